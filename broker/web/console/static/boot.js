// Load the console. A browser drops what it is loading when the network of its machine changes, and a module that is missing
// leaves an empty page, so the page is loaded again, at first soon and then less often.
const TRIES = "pulsarium.tries", SOON_MS = 300;

try {
  await import("./app.js");
  sessionStorage.removeItem(TRIES);
} catch (error) {
  const tries = Number(sessionStorage.getItem(TRIES) || 0), wait = Math.min(SOON_MS * 2 ** tries, 30_000);
  const told = document.querySelector(".boot");
  told.hidden = false;
  told.textContent = `A part of the console did not load (${error.message}). The page is loaded again in ${Math.ceil(wait / 1000)} s.`;
  sessionStorage.setItem(TRIES, String(tries + 1));
  setTimeout(() => location.reload(), wait);
}
