// All routes by name: a new page of data is one more line here. Numbers for other programs, such as
// those of `stats --prom`, are routes too.
import { consumers, documents, event, events, logs } from "./events.ts";
import { changes, file, fileContent, files, filesWork, search, session } from "./files.ts";
import { boxes, ticket, ticketFile, tickets } from "./handoff.ts";
import { bucket, buckets, keys, objectContent, versions } from "./objects.ts";
import { locks, overview } from "./overview.ts";
import type { DownloadRoute, Route } from "./route.ts";

export const routes: Readonly<Record<string, Route>> = {
  overview,
  locks,
  logs,
  events,
  event,
  consumers,
  documents,
  boxes,
  tickets,
  ticket,
  buckets,
  bucket,
  keys,
  versions,
  files,
  file,
  changes,
  search,
  "files-work": filesWork,
  session,
};

export const downloads: Readonly<Record<string, DownloadRoute>> = {
  "ticket-file": ticketFile,
  "object-content": objectContent,
  "file-content": fileContent,
};
