// The dialog that asks for a reading token. Requests that need one wait for the same answer.

let waiting = null;

/** Resolves with what was entered; `reason` says why the token before did not do. */
export function askToken(reason) {
  waiting ??= new Promise((resolve) => {
    const dialog = document.getElementById("token-dialog");
    const field = document.getElementById("token-field");
    const why = document.getElementById("token-reason");
    why.textContent = reason;
    why.hidden = reason === "";
    field.value = "";
    const submit = (event) => {
      event.preventDefault(); // form-action 'none': nothing is ever sent by a form
      if (!field.value) return;
      document.getElementById("token-form").removeEventListener("submit", submit);
      dialog.removeEventListener("cancel", keep);
      const token = field.value;
      field.value = "";
      dialog.close();
      waiting = null;
      resolve(token);
    };
    // Without a token nothing can be shown: Escape does not close it.
    const keep = (event) => event.preventDefault();
    document.getElementById("token-form").addEventListener("submit", submit);
    dialog.addEventListener("cancel", keep);
    dialog.showModal();
    field.focus();
  });
  return waiting;
}
