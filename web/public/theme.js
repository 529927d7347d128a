// Before the first paint: the theme that was chosen, so that nothing flashes.
try {
  var chosen = localStorage.getItem("turnkeeper.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (e) {
  // private mode
}
