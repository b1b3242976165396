// Writes paths as the platform does. Holdfast itself separates names by "/" everywhere.

/** Returns `path` with backslashes on Windows, because its programs take `/` for the beginning of an option. */
export function nativePath(path: string, platform: NodeJS.Platform = process.platform): string {
  return platform === "win32" ? path.replaceAll("/", "\\") : path;
}

/** A path with a drive or a server, up to a character that ends a word. */
const absolutePath = /(?<![\w/\\:])(?:[a-z]:|[\\/]{2}[^\s\\/:"']+)[\\/][^\s"'<>|*?:,;()]*/gi;

/** Writes the absolute paths in a text as the platform does. */
export function withNativePaths(text: string, platform: NodeJS.Platform = process.platform): string {
  return platform === "win32" ? text.replaceAll(absolutePath, (path) => nativePath(path, platform)) : text;
}
