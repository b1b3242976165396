// One page for each folder of examples, with its files as they are.
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { exampleFolders, filesOfExample, root } from "../.vitepress/pages.ts";

const languages = { ".mjs": "js", ".service": "ini", ".timer": "ini", ".dockerignore": "text", "": "docker" };

const blockOf = (folder, file) => {
  const text = readFileSync(join(root, "examples", folder, file), "utf8").trimEnd();
  const extension = extname(file);
  return `## ${file}\n\n~~~~${languages[extension] ?? extension.slice(1)}\n${text}\n~~~~\n`;
};

export default {
  paths: () =>
    exampleFolders.map((folder) => ({
      params: { folder },
      content: `# Examples: ${folder}\n\n${filesOfExample(folder)
        .map((file) => blockOf(folder, file))
        .join("\n")}`,
    })),
};
