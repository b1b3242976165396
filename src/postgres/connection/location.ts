// Locations in PostgreSQL: `postgres://user@host/db?store=shop#events/main`. The query may name a
// store, and the fragment a part of it; the driver gets the rest.
import { holdfastError } from "../../errors.ts";
import { redacted } from "../../format/database-location.ts";

export const storeDefault = "main";

export interface PostgresLocation {
  /** For the driver: it has the password and must never be shown. */
  readonly url: string;
  readonly store: string;
  /** Such as "events/main". */
  readonly part: string | undefined;
  /** For messages: it does not have the password. */
  readonly shown: string;
}

/** Parses a location. Throws INVALID_PATH. */
export function parseLocation(location: string | URL): PostgresLocation {
  const text = String(location);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    // Omits the cause, which has the location with the password.
    throw invalid(text, "it is not a URL");
  }
  if (!/^postgres(ql)?:$/.test(url.protocol)) throw invalid(text, "it does not begin with postgres:");
  const store = url.searchParams.get("store") ?? storeDefault;
  if (store === "") throw invalid(text, "it names no store");
  const part = url.hash === "" ? undefined : decodeURIComponent(url.hash.slice(1));
  url.searchParams.delete("store");
  url.hash = "";
  return { url: url.href, store, part, shown: redacted(text) };
}

function invalid(location: string, why: string): Error {
  const path = redacted(location);
  return holdfastError("INVALID_PATH", `The location ${JSON.stringify(path)} cannot be used: ${why}.`, { path });
}
