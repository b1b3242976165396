// The site of website/ shows every page of the repository, and samples only from pages whose programs are run by tests.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  addressOf,
  excluded,
  makeSidebars,
  sampleOf,
  siteAddress,
  type SidebarItem,
} from "../../website/.vitepress/pages.ts";
import { root } from "./user-programs.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const linksOf = ({ link, items = [] }: SidebarItem): string[] => [
  ...(link === undefined ? [] : [link]),
  ...items.flatMap(linksOf),
];

it("the sidebars list every page of docs, clients and examples once", () => {
  const pagesIn = (folder: string): string[] =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
      .filter((name) => name.endsWith(".md") && !/node_modules|^docs\/api\//.test(name));
  const rootPages = readdirSync(root).filter((name) => name.endsWith(".md"));
  const examples = readdirSync(join(root, "examples")).map((name) => `/examples/${name}.md`);
  const expected = [
    ...[...rootPages, ...pagesIn("docs"), ...pagesIn("clients")].map((page) => `/${addressOf(page)}`),
    ...examples,
  ];
  const listed = Object.values(makeSidebars())
    .flat()
    .flatMap(linksOf)
    .filter((link) => !link.startsWith("/api/"));
  // The index of a folder is listed in the main sidebar and in its own.
  // Each other sidebar leads back to the first page.
  for (const index of ["/format/index.md", "/decisions/index.md", "/start.md", "/start.md", "/start.md"])
    listed.splice(listed.indexOf(index), 1);
  expect(expected.length).toBeGreaterThan(200);
  expect(listed.toSorted()).toEqual(expected.toSorted());
});

it("the site has no page of a folder that is not for readers", () => {
  expect(excluded).toEqual(expect.arrayContaining(["src/**", "test/**", "node_modules/**"]));
  expect(excluded.filter((pattern) => /^(docs|website)\//.test(pattern))).toEqual([]);
});

it("a link between files of the repository leads to the page of that file", () => {
  expect(siteAddress("docs/locks.md")).toBe("/locks.md");
  expect(siteAddress("docs/decisions")).toBe("/decisions/index.md");
  expect(siteAddress("README.md")).toBe("/start.md");
  expect(siteAddress("examples/handoff/box.py")).toBe("/examples/handoff.md#boxpy");
  expect(siteAddress("src/store.ts")).toBeUndefined();
});

it("the front page has three samples, each a program that a test runs", () => {
  const page = read("website/index.md");
  const samples = [...page.matchAll(/^<!-- sample (\S+) "(.*)" (\w+) -->$/gm)];
  expect(samples).toHaveLength(3);
  // test/docs/docs.test.ts runs all programs of the README.
  for (const [, file = "", heading = "", language = ""] of samples) {
    expect([file, language]).toEqual(["README.md", "ts"]);
    expect(sampleOf(file, heading, language)).toContain("await");
  }
  expect(page).not.toMatch(/^(```|~~~)/m);
});

it("the recording of the front page shows a run of the demo whose audits found nothing lost", () => {
  const recording = read("website/public/demo.svg");
  expect(read("website/index.md")).toContain("/demo.svg");
  expect([...recording.matchAll(/>lost +(\d+)</g)].map(([, lost]) => lost)).toEqual(Array(6).fill("0"));
  expect(recording).toContain("Nothing was lost and nothing was doubled");
  expect(recording).toContain("prefers-reduced-motion");
  expect(recording.length).toBeLessThan(30_000);
});

it("the package neither contains nor needs the site", () => {
  const { files, dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, object>;
  expect(files).not.toContain("website");
  expect(Object.keys({ ...dependencies, ...devDependencies })).not.toContain("vitepress");
  expect(read("website/.npmrc")).toContain("ignore-scripts=true");
});

it("the lock file of the site names no registry, and has the packages of every platform", () => {
  const lock = read("website/package-lock.json");
  expect(lock).not.toContain('"resolved"');
  const { packages } = JSON.parse(lock) as { packages: Record<string, Record<string, object>> };
  const names = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
  const needed = Object.values(packages).flatMap(({ dependencies, optionalDependencies }) =>
    Object.keys({ ...dependencies, ...optionalDependencies }),
  );
  expect(needed.length).toBeGreaterThan(100);
  expect(needed.filter((name) => !names.has(name))).toEqual([]);
});
