// Addresses of live views name the service as its callers reach it; the console reaches it by its own address, and may
// frame nothing else.
export function sameOrigin(address) {
  if (!address) return null;
  try {
    const url = new URL(address, location.origin);
    return url.pathname.startsWith("/live/") ? location.origin + url.pathname + url.search + url.hash : null;
  } catch {
    return null;
  }
}
