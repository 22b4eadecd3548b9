// Before anything is drawn, so that a page asked to be dark never flashes.
(() => {
  const chosen = localStorage.getItem("streamwatch-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
