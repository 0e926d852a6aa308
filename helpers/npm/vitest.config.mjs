export default { test: { include: ["test/*.vitest.mjs"] } };
