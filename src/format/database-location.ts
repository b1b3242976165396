// Locations in a database as text: how they differ from paths, and how they are shown.

/** True for a location in PostgreSQL; everything else is a path or a URL of a folder. */
export function isDatabase(location: string): boolean {
  return /^postgres(ql)?:/i.test(location);
}

/** Returns the location without its password. Works for any text, including one that is no URL. */
export function redacted(location: string): string {
  // The second form is for a password with characters that a URL cannot have.
  return location
    .replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#@:]*):(?:[^/?#]*|.*)@/i, "$1:***@")
    .replace(/([?&](?:password|sslpassword)=)[^&#]*/gi, "$1***");
}
