// Templates of the pages. A line break in a template is a space, as in HTML; htm alone would drop it, and words would run together.
import { html as htm } from "./preact.js";
export { createContext, render, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";

const spaced = new WeakMap();

export function html(strings, ...values) {
  let texts = spaced.get(strings);
  if (!texts) spaced.set(strings, texts = strings.map((text) => text.replace(/\s*\n\s*/g, " ")));
  return htm(texts, ...values);
}
