// The way in: a key, or a link that works once. Neither is kept by the page; what stays is a cookie that no script sees.
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { BASE, current } from "../lib/router.js";
import { post } from "../lib/api.js";
import { store } from "../lib/store.js";
import { Button, Field } from "../parts/basics.js";

/// Where links lead to, and where nobody stays who is signed in.
export const AT = `${BASE}/sign-in`;

/// What a link has brought behind the "#", out of the address bar and the history before anything else happens.
export function takeToken() {
  const token = current().path === AT ? location.hash.slice(1) : "";
  if (token) history.replaceState(null, "", AT);
  return token;
}

export function SignIn({ said }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const input = useRef(null);
  const [error, setError] = useState(said || "");
  const enter = async () => {
    setBusy(true);
    setError("");
    try {
      store.signedIn(await post("/sign-in", { key: key.trim() }));
    } catch (failure) {
      setError(failure.status === 401 ? "This key is not known here." : failure.message);
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Weir";
    if (input.current) input.current.focus();
  }, []);
  return html`<main class="sign"><div class="sign-box">
    <img src=${new URL("../icon.svg", import.meta.url).href} alt="" />
    <div><h1>Sign in to Weir</h1><p class="soft">With an API key for one team, or with the operator's key for all.</p>
    </div>
    <form onSubmit=${(event) => {
      event.preventDefault();
      if (key.trim()) enter();
    }}>
      <${Field} label="Key"><input ref=${input} class="input mono" type="password" name="key"
          autocomplete="current-password" spellcheck="false" required value=${key}
            onInput=${(event) => setKey(event.target.value)} /><//>
      ${error ? html`<p class="banner bad" role="alert">${error}</p>` : null}
      <${Button} kind="primary" type="submit" busy=${busy}>Sign in<//>
    </form>
    <p class="hint">The key of the first team is in <code>data/api-key</code> beside the service, or what <code>WEIR_API_KEY</code> says. The operator's is <code>WEIR_CONSOLE_KEY</code>.</p>
  </div></main>`;
}
