// What lies over a page: dialogs, drawers, and toasts that tell what an act did and how to take it back.
import { html, useEffect, useRef, useState } from "./html.js";

export function Overlay({ label, kind = "", onEnd, children }) {
  const ref = useRef();
  useEffect(() => { ref.current.showModal(); }, []);
  const outside = (event) => { if (event.target === ref.current) ref.current.close(); };
  return html`<dialog ref=${ref} class=${kind} aria-label=${label} onClose=${onEnd} onMouseDown=${outside}>${children(() => ref.current.close())}</dialog>`;
}

const SHOWN_MS = 12_000;
let tellAll = () => {};
let number = 0;

// Show a sentence, with a button that takes the act back: { label, act }.
export function toast(text, undo) {
  tellAll({ id: ++number, text, undo });
}

export function Toasts() {
  const [shown, set] = useState([]);
  const drop = (id) => set((old) => old.filter((each) => each.id !== id));
  tellAll = (one) => {
    set((old) => [...old.slice(-2), one]);
    setTimeout(() => drop(one.id), SHOWN_MS);
  };
  const undo = async (one) => {
    drop(one.id);
    try { await one.undo.act(); toast(`${one.undo.label}: done.`); } catch (error) { toast(error.message); }
  };
  return html`<div class="toasts" role="status">${shown.map((one) => html`<div class="toast" key=${one.id}><span>${one.text}</span>
    ${one.undo && html`<button type="button" onClick=${() => undo(one)}>${one.undo.label}</button>`}
    <button type="button" aria-label="Dismiss" onClick=${() => drop(one.id)}>×</button></div>`)}</div>`;
}
