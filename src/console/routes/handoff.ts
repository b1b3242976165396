// The routes of the hand-off: boxes, pages of tickets with filters, one ticket, its files.
import type { Handoff, TicketInfo, TicketState } from "../../handoff/index.ts";
import type { Query } from "../http/query.ts";
import { RequestError } from "../http/request-error.ts";
import type { DownloadRoute, Route } from "./route.ts";

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];
/**
 * A page ends after reading this many tickets, even if few match the filter. The next page
 * continues there.
 */
const readMax = 500;

export const boxes: Route = async (_query, { sampler }) => ({ boxes: (await sampler.recent()).boxes });

export const tickets: Route = async (query, { watched }) => {
  const box = await watched.box(query.get("box"));
  const state = query.oneOf("state", states);
  const key = query.find("key");
  const exact = key === undefined ? undefined : await box.findByKey(key);
  if (exact?.state === state) return { tickets: [exact] };
  const matches = matcherOf(query);
  const [skip, limit] = [query.count("skip", 0), query.limit()];
  const group = query.find("group");
  // Waiting tickets are shown in the order of delivery, finished ones latest first.
  const backwards = state === "archive" || state === "error";
  const page: TicketInfo[] = [];
  let read = 0;
  for await (const ticket of box.list(state, { skip, group, backwards })) {
    if (page.length === limit || read === readMax) return { tickets: page, next: skip + read };
    read++;
    if (matches(ticket)) page.push(ticket);
  }
  return { tickets: page };
};

export const ticket: Route = async (query, { watched }) => {
  const box = await watched.box(query.get("box"));
  return { ticket: await get(box, query.get("id")) };
};

export const ticketFile: DownloadRoute = async (query, { watched }) => {
  const box = await watched.box(query.get("box"));
  const [id, name] = [query.get("id"), query.get("name")];
  const output = query.find("output") !== undefined;
  const { files, outputs } = await get(box, id);
  const size = (output ? outputs : files).find((file) => file.name === name)?.size;
  return { name, body: box.content(id, name, { output }), ...(size === undefined ? {} : { size }) };
};

async function get(box: Handoff, id: string): Promise<TicketInfo> {
  const found = await box.find(id);
  if (found === undefined) throw new RequestError(404, "NO_SUCH_TICKET", "The box has no ticket of this id any more.");
  return found;
}

/** Returns a filter by a part of the key and by the least age in minutes. */
function matcherOf(query: Query): (ticket: TicketInfo) => boolean {
  const part = query.find("key")?.toLowerCase() ?? "";
  const bornBeforeMs = Date.now() - query.count("minutes", 0) * 60_000;
  return ({ key, createdAt }) => key.toLowerCase().includes(part) && createdAt.getTime() <= bornBeforeMs;
}
