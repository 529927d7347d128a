import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // Every path of the view is served the same page, so the page names its files from the
  // top; scripts find each other, and the daemon, from where they lie themselves. A proxy
  // that serves us below a path has only the addresses of index.html to rewrite.
  base: "./",
  experimental: { renderBuiltUrl: (file, { hostType }) => (hostType === "html" ? `/${file}` : { relative: true }) },
  resolve: {
    alias: [
      { find: /^#client\//, replacement: here("../clientgen/ts/") },
      // The generated client lies outside this folder; its one import is ours.
      { find: /^openapi-fetch$/, replacement: here("node_modules/openapi-fetch/dist/index.mjs") },
    ],
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    assetsInlineLimit: 0, // a data: script or style would need a weaker policy
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    cssCodeSplit: false,
  },
  server: {
    fs: { allow: [here("..")] },
    proxy: { "/v1": { target: process.env.TURNKEEPER_URL ?? "http://127.0.0.1:4880", ws: true, changeOrigin: false } },
  },
  test: {
    environment: "node",
    include: ["test/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 30_000, // a busy machine is no failure
  },
});
