// Markdown as the repository has it, made into pages: links lead to pages, and samples come from the pages that tests run.
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { root, sampleOf, siteAddress, slugOf } from "./pages.ts";

const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const repository = homepage.replace("#readme", "");
const ofRepository = new RegExp(`^${repository}/(?:blob|tree)/main/(.+)$`);

export function extendMarkdown(md) {
  md.core.ruler.before("normalize", "samples", (state) => {
    state.src = state.src.replaceAll(/^<!-- sample (\S+) "(.*)" (\w+) -->$/gm, (_, file, heading, language) =>
      ["```" + language, sampleOf(file, heading, language).trimEnd(), "```"].join("\n"),
    );
  });
  md.core.ruler.push("links", (state) => {
    const file = sourceOf(state.env);
    for (const token of state.tokens.flatMap((each) => each.children ?? [])) {
      if (token.type === "link_open") token.attrSet("href", resolveLink(token.attrGet("href"), file));
    }
  });
}

/** The path in the repository of the file that is rendered. */
const sourceOf = (env) => posix.relative(root, env.realPath ?? env.path ?? join(root, "README.md"));

/** A link of a file of the repository, as a link of its page. */
function resolveLink(href, file) {
  const [, path] = ofRepository.exec(href) ?? [];
  if (/^([a-z][a-z0-9+.-]*:|#|\/)/i.test(href) && path === undefined) return href;
  const [target, anchor] = (path ?? posix.join(posix.dirname(file), decodeURI(href))).split("#");
  const name = target.replace(/\/$/, "");
  const address = siteAddress(name);
  if (address !== undefined) return anchor === undefined ? address : `${address}#${anchor}`;
  if (!existsSync(join(root, name))) throw new Error(`${file} links to ${name}, which does not exist.`);
  return `${repository}/blob/main/${name}`;
}

export { slugOf };
