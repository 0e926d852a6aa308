import { usePulsarium } from "pulsarium/vitest";
import { expect, test } from "vitest";

import { orders } from "./orders.js";

orders({ usePulsarium, test, expect });
