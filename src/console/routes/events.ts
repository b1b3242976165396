// The routes of the event logs: a tail with filters, one event with the events around it,
// consumers, read models and their documents.
import { listReadModels, readDocuments, type EventStore, type Query as EventQuery } from "../../events/index.ts";
import type { SequencedEvent } from "../../events/index.ts";
import { pageOf, type Query } from "../http/query.ts";
import { RequestError } from "../http/request-error.ts";
import type { Route } from "./route.ts";

/** How many events before and after are searched for causes and effects. */
const kinMax = 1000;
const surroundingCount = 3;

export const logs: Route = async (_query, { sampler }) => ({ logs: (await sampler.recent()).logs });

export const events: Route = async (query, { watched }) => {
  const log = await watched.log(query.get("log"));
  const before = query.count("before", Number.MAX_SAFE_INTEGER);
  const { items, hasMore } = await pageOf(
    log.read(eventQueryOf(query), {
      backwards: true,
      upTo: Math.max(0, before - 1),
      since: query.moment("since"),
      until: query.moment("until"),
      limit: query.limit() + 1,
    }),
    query.limit(),
  );
  return { head: await log.head(), events: items, ...(hasMore ? { next: items.at(-1)?.position } : {}) };
};

export const event: Route = async (query, { watched }) => {
  const log = await watched.log(query.get("log"));
  const position = query.count("position", 0);
  const around = await listOf(log, position - surroundingCount - 1, position + surroundingCount);
  const found = around.find((each) => each.position === position);
  if (found === undefined) throw new RequestError(404, "NO_SUCH_EVENT", `There is no event at position ${position}.`);
  const { causationId } = found.metadata;
  const before = await listOf(log, position - kinMax - 1, position - 1);
  const after = await listOf(log, position, position + kinMax);
  return {
    event: found,
    surrounding: around.filter((each) => each.position !== position).map(summaryOf),
    cause: before
      .filter(({ id }) => id === causationId)
      .map(summaryOf)
      .at(0),
    effects: after.filter(({ metadata }) => metadata["causationId"] === found.id).map(summaryOf),
  };
};

export const consumers: Route = async (query, { watched }) => {
  const log = await watched.log(query.get("log"));
  return { head: await log.head(), consumers: await log.consumers(), models: await listReadModels(log) };
};

export const documents: Route = async (query, { watched }) => {
  const log = await watched.log(query.get("log"));
  const skip = query.count("skip", 0);
  const found = readDocuments(log, query.get("model"), { key: query.find("key"), skip, limit: query.limit() + 1 });
  const { items, hasMore } = await pageOf(found, query.limit());
  return { documents: items, ...(hasMore ? { next: skip + items.length } : {}) };
};

function eventQueryOf(query: Query): EventQuery {
  const [types, tags] = [query.list("type"), query.list("tag")];
  if (types.length === 0 && tags.length === 0) return "all";
  return { ...(types.length > 0 && { types }), ...(tags.length > 0 && { tags }) };
}

async function listOf(log: EventStore, after: number, upTo: number): Promise<SequencedEvent[]> {
  const { items } = await pageOf(log.read("all", { after: Math.max(0, after), upTo: Math.max(0, upTo) }), kinMax);
  return items;
}

function summaryOf({ position, type, time, tags }: SequencedEvent): object {
  return { position, type, time, tags };
}
