"use strict";

const { expect, test } = require("@jest/globals");
const { usePulsarium } = require("pulsarium/jest");
const { orders } = require("./orders.js");

test.skipIf = (condition) => (condition ? test.skip : test); // as Vitest has it
orders({ usePulsarium, test, expect });
