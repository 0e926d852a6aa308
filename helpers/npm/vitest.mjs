import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

import { use } from "./index.js";

export const usePulsarium = use({ afterAll, afterEach, beforeAll, beforeEach, expect });
