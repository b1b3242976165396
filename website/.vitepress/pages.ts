// Which Markdown files are pages of the site, at which addresses, and how the sidebar lists them: read from the folders.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "../..");

export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarItem[];
}

const start = "README.md";
const frontPage = "website/index.md";
/** A page of `docs` that is in none of these lists is a guide. */
const choosing = ["docs/choosing.md", "docs/guarantees.md"];
const reference = ["docs/errors.md", "docs/glossary.md", "docs/benchmarks.md"];
const background = ["docs/architecture.md"];
/** The order of the guides that a newcomer reads first; the others follow by name. */
const firstGuides = [
  "locks",
  "events",
  "handoff",
  "objects",
  "s3",
  "files",
  "console",
  "agents",
  "bundlers",
  "python",
  "testing",
];

const isPage = (name: string): boolean => name.endsWith(".md");
const namesIn = (folder: string): string[] =>
  existsSync(join(root, folder)) ? readdirSync(join(root, folder)).toSorted() : [];
/** Clients in other languages have a page each. */
const clientPages = namesIn("clients").map((name) => `clients/${name}/README.md`);
const pagesIn = (folder: string): string[] =>
  namesIn(folder)
    .filter(isPage)
    .map((name) => `${folder}/${name}`);

/** The pages beside the README. */
const rootPages = namesIn("").filter((name) => isPage(name) && name !== start);
const isFolder = (path: string): boolean =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true;

/** The folders of `examples`: the site shows the files of each on one page. */
export const exampleFolders = namesIn("examples").filter((name) => isFolder(`examples/${name}`));
export const filesOfExample = (folder: string): string[] =>
  namesIn(`examples/${folder}`).filter((name) => !isFolder(`examples/${folder}/${name}`));

/** Patterns of Markdown files that are no pages. */
export const excluded = [
  ...namesIn("")
    .filter((name) => isFolder(name) && !["docs", "clients", "website"].includes(name))
    .map((name) => `${name}/**`),
  "clients/*/*/**",
];

/** Where the page of a Markdown file is, as a path below the site's. */
export function addressOf(file: string): string {
  if (file === start) return "start.md";
  const path = rootPages.includes(file) ? file.toLowerCase() : file;
  return path.replace(/^(website|docs)\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

/** The first heading of a page. */
export function titleOf(file: string): string {
  const [, title = file] = /^# (.*)$/m.exec(readFileSync(join(root, file), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** An item for the page of a Markdown file. */
const itemOf = (file: string, text = titleOf(file)): SidebarItem => ({ text, link: `/${addressOf(file)}` });

/** Items for pages, and for the index of their folder before them. */
const itemsOf = (files: readonly string[]): SidebarItem[] => {
  const isIndex = (file: string): boolean => file.startsWith("docs/") && posix.basename(file) === "README.md";
  return [...files.filter(isIndex), ...files.filter((file) => !isIndex(file))].map((file) => itemOf(file));
};

const byOrder = (a: string, b: string): number => {
  const places = [a, b].map((file) => (firstGuides.indexOf(posix.basename(file, ".md")) + 99) % 99);
  return places[0]! - places[1]! || a.localeCompare(b);
};

/**
 * The sidebars by the beginning of an address. Together they list each page of `docs` once, except those of the generated
 * reference, of which they list the subpaths.
 */
export function makeSidebars(): Record<string, SidebarItem[]> {
  const back = { text: "← All pages", link: "/start.md" };
  return {
    "/": mainSidebar(),
    "/api/": [back, { text: "API", items: apiItems() }],
    "/format/": [back, { text: "On-disk formats", items: itemsOf(pagesIn("docs/format")) }],
    "/decisions/": [back, { text: "Decisions", items: itemsOf(pagesIn("docs/decisions")) }],
  };
}

function mainSidebar(): SidebarItem[] {
  const special = [...choosing, ...reference, ...background];
  const guides = pagesIn("docs").filter((file) => !special.includes(file));
  const groups: SidebarItem[] = [
    { text: "Begin", items: [itemOf(start, "Start here"), ...itemsOf(existing(choosing))] },
    { text: "Guides", items: itemsOf([...guides.toSorted(byOrder), ...clientPages]) },
    { text: "Recipes", items: itemsOf(pagesIn("docs/recipes")) },
    {
      text: "Examples",
      collapsed: true,
      items: exampleFolders.map((folder) => ({ text: folder, link: `/examples/${folder}.md` })),
    },
    {
      text: "Reference",
      items: [...itemsOf(existing(reference)), { text: "API", link: "/api/index.md" }, itemOf("docs/format/README.md")],
    },
    {
      text: "Background",
      items: [...itemsOf(existing(background)), itemOf("docs/decisions/README.md"), ...itemsOf(rootPages)],
    },
    ...otherFolders().map((folder) => ({ text: folder, items: itemsOf(pagesIn(`docs/${folder}`)) })),
  ];
  return groups.filter(({ items }) => items?.length !== 0);
}

const existing = (files: readonly string[]): string[] => files.filter((file) => existsSync(join(root, file)));

/** Folders that nobody has given a place in the sidebar yet: they get one at its end. */
const otherFolders = (): string[] =>
  namesIn("docs").filter(
    (name) => isFolder(`docs/${name}`) && !["api", "decisions", "format", "recipes", "images"].includes(name),
  );

/** The subpaths of the package. What typedoc writes is there only once it has run. */
const apiItems = (): SidebarItem[] => [
  { text: "All subpaths", link: "/api/index.md" },
  ...namesIn("docs/api")
    .filter((name) => isFolder(`docs/api/${name}`))
    .toSorted((a, b) => Number(b === "index") - Number(a === "index"))
    .map((name) => ({ text: name === "index" ? "holdfast" : `holdfast/${name}`, link: `/api/${name}/index.md` })),
];

/** Where a path of the repository is on the site: a page, an example on its page, or else undefined. */
export function siteAddress(path: string): string | undefined {
  if (isPage(path) && ([start, frontPage, ...rootPages, ...clientPages].includes(path) || path.startsWith("docs/")))
    return `/${addressOf(path)}`;
  const [folder, name, file] = path.split("/");
  if (folder === "examples" && name !== undefined && exampleFolders.includes(name))
    return `/examples/${name}.md${file === undefined ? "" : `#${slugOf(file)}`}`;
  return existsSync(join(root, path, "README.md")) ? siteAddress(`${path}/README.md`) : undefined;
}

/** The anchor of a heading, as GitHub makes it. */
export const slugOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");

/** The first block of a language below a heading of a page. */
export function sampleOf(file: string, heading: string, language: string): string {
  const text = readFileSync(join(root, file), "utf8");
  const section = text.split(`## ${heading}\n`)[1]?.split(/^## /m)[0] ?? "";
  const block = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "ms").exec(section)?.[1];
  if (block === undefined) throw new Error(`${file} has no ${language} block under "${heading}".`);
  return block;
}
