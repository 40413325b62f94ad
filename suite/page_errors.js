// First of all, so that nothing that goes wrong later stays unseen.
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message || String(event.error);
  const notice = document.getElementById("error");
  if (notice) {
    notice.hidden = false;
    notice.textContent = "This page met an error and may be incomplete: " + event.message;
  }
});
