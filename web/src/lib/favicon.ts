// The tab's picture, with the number of open questions on it.

let shown = 0;
let plain = "";

export function showPending(n: number): void {
  if (n === shown) return;
  shown = n;
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link) return;
  plain ||= link.href;
  link.href = n === 0 ? plain : badge(n);
}

function badge(n: number): string {
  const text = n > 9 ? "9+" : String(n);
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
    '<path d="M8 4v24M8 11h8a7 7 0 0 1 7 7v8M8 19h5" fill="none" stroke="#7b8bd6" stroke-width="3" stroke-linecap="round"/>' +
    '<circle cx="21" cy="11" r="11" fill="#b26a00"/>' +
    `<text x="21" y="16.5" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="15" fill="#fff">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
