// Lays out what earlier builds have written. The files are never written anew.
import { link, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** A name that ends with a slash is an empty directory. A value that begins with "=" is the path of another link. */
export async function layOut(root: string, name: string): Promise<void> {
  const written = new URL(name, import.meta.url);
  const files = JSON.parse(await readFile(written, "utf8")) as Record<string, string>;
  for (const [path, content] of Object.entries(files)) {
    const target = join(root, path);
    await mkdir(path.endsWith("/") ? target : dirname(target), { recursive: true });
    if (path.endsWith("/")) continue;
    if (content.startsWith("=")) await link(join(root, content.slice(1)), target);
    else await writeFile(target, Buffer.from(content, "base64"));
  }
}
