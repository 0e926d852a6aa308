"use strict";

const { use } = require("./index.js");

exports.usePulsarium = use(require("@jest/globals"));
