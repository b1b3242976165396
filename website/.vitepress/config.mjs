// The site: every page of the repository, with search that asks no other host.
import { extendMarkdown, slugOf } from "./markdown.mjs";
import { addressOf, excluded, makeSidebars, root } from "./pages.ts";

// Pages lie outside of this folder: without this, Node would look for Vue beside them.
const vueOfTheSite = {
  name: "vue-of-the-site",
  enforce: "pre",
  resolveId: (id, _, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : undefined),
};

/** Guides come before the generated reference, and decisions last. Runs in the browser. */
const boostDocument = (id) => (/\/decisions\/\d/.test(id) ? 0.3 : id.includes("/api/") ? 0.5 : 1);

export default {
  title: "Holdfast",
  description: "Many processes and many machines share one folder without losing a write. No server.",
  lang: "en",
  base: process.env.SITE_BASE ?? "/",
  srcDir: root,
  srcExclude: excluded,
  rewrites: addressOf,
  metaChunk: true,
  head: [["link", { rel: "icon", href: "data:," }]],
  // What leads nowhere is found in the built pages, anchors too: check-links.mjs.
  ignoreDeadLinks: true,
  markdown: {
    attrs: { disable: true },
    anchor: { slugify: slugOf },
    config: extendMarkdown,
  },
  vite: {
    publicDir: `${root}/website/public`,
    build: { chunkSizeWarningLimit: 10_000 },
    plugins: [vueOfTheSite],
  },
  themeConfig: {
    search: { provider: "local", options: { miniSearch: { searchOptions: { boostDocument } } } },
    outline: { level: [2, 3] },
    nav: [
      { text: "Start", link: "/start.md" },
      { text: "Guides", link: "/locks.md" },
      { text: "Recipes", link: "/recipes/index.md" },
      { text: "Errors", link: "/errors.md" },
      { text: "API", link: "/api/index.md" },
    ],
    sidebar: makeSidebars(),
    socialLinks: [{ icon: "github", link: "https://github.com/holdfast-store/holdfast" }],
  },
};
