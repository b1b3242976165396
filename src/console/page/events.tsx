// The events: logs, a tail with filters, one event with its causes and the events around it,
// consumers, read models and their documents.
import type { JSX } from "preact";
import { useData } from "./api.ts";
import { bytes, count, rate } from "./format.ts";
import type { EventSummary, Holder, Log, StoredEvent } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import {
  Badge,
  Facts,
  Filters,
  HolderName,
  Json,
  linkTo,
  Pager,
  Panel,
  Table,
  Tabs,
  Text,
  Time,
  Trouble,
  Waiting,
} from "./parts.tsx";

type At = ViewProps["at"];

export function EventsView({ live, at }: ViewProps): JSX.Element {
  const { data, error } = useData<{ logs: readonly Log[] }>("logs", {}, live.sample?.logs);
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const { logs } = data;
  const [first] = logs;
  if (first === undefined) return <p class="empty">This store has no event logs.</p>;
  const log = logs.find(({ name }) => name === at["log"]) ?? first;
  const { position, model } = at;
  return (
    <>
      <Tabs
        label="Logs"
        tabs={logs.map(({ name, head, bytes: size, perSecond }) => ({
          title: (
            <>
              <Text value={name} isShort />{" "}
              <span class="quiet">
                {count(head)} · {bytes(size)}
                {perSecond === undefined ? null : ` · ${rate(perSecond)}/s`}
              </span>
            </>
          ),
          to: linkTo("events", { log: name }),
          isOn: name === log.name,
        }))}
      />
      {position === undefined ? (
        <div class="columns wide-first">
          <Tail log={log} at={at} />
          <div>
            <Followers log={log} at={at} />
            {model === undefined ? null : <Documents log={log.name} model={model} at={at} />}
          </div>
        </div>
      ) : (
        <OneEvent log={log.name} position={position} />
      )}
    </>
  );
}

function Tail({ log, at }: { log: Log; at: At }): JSX.Element {
  const { before, type = "", tag = "", since = "", until = "" } = at;
  const parameters = { log: log.name, before, type, tag, since: isoOf(since), until: isoOf(until) };
  const { data, error } = useData<{ events: readonly StoredEvent[]; next?: number }>(
    "events",
    parameters,
    before === undefined ? log.head : 0,
  );
  const go = (more: Record<string, string | number | undefined>): void => {
    location.hash = linkTo("events", { log: log.name, type, tag, since, until, ...more });
  };
  return (
    <Panel title="Tail" aside={<span class="quiet">newest first</span>}>
      <Filters
        fields={[
          { name: "type", title: "Type", value: type, hint: "Sold, Stocked" },
          { name: "tag", title: "All of these tags", value: tag, hint: "sku:A1" },
          { name: "since", title: "Since", value: since, kind: "datetime-local" },
          { name: "until", title: "Until", value: until, kind: "datetime-local" },
        ]}
        onChange={(values) => go({ ...values, before: undefined })}
      />
      <Trouble error={error} />
      {data === undefined ? <Waiting /> : null}
      {data === undefined ? null : (
        <Table
          caption={`Events of the log ${log.name}`}
          rows={data.events}
          keyOf={({ position }) => position}
          empty="No events match."
          columns={[
            {
              title: "Position",
              kind: "number",
              cell: ({ position }) => <a href={linkTo("events", { log: log.name, position })}>{count(position)}</a>,
            },
            { title: "Time", cell: ({ time }) => <Time at={time} /> },
            { title: "Type", cell: ({ type: name }) => <Text value={name} isShort /> },
            { title: "Tags", cell: ({ tags }) => <Tags tags={tags} /> },
            {
              title: "Data",
              kind: "wide",
              cell: ({ data: content }) => <Text value={JSON.stringify(content)} isShort />,
            },
          ]}
        />
      )}
      <Pager
        next={data?.next !== undefined}
        isFirst={before === undefined}
        onNext={() => go({ before: data?.next })}
        onFirst={() => go({ before: undefined })}
      />
    </Panel>
  );
}

/** The field contains local time. */
function isoOf(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

function Tags({ tags }: { tags: readonly string[] }): JSX.Element {
  return (
    <span class="tags">
      {tags.slice(0, 8).map((tag) => (
        <span class="tag">
          <Text value={tag} isShort />
        </span>
      ))}
      {tags.length > 8 ? <span class="quiet">and {tags.length - 8} more</span> : null}
    </span>
  );
}

function OneEvent({ log, position }: { log: string; position: string }): JSX.Element {
  const { data, error } = useData<{
    event: StoredEvent;
    surrounding: readonly EventSummary[];
    cause?: EventSummary;
    effects: readonly EventSummary[];
  }>("event", { log, position });
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const { event, surrounding, cause, effects } = data;
  const { causationId, correlationId, ...metadata } = event.metadata;
  const link = (each: EventSummary): JSX.Element => (
    <li>
      <a href={linkTo("events", { log, position: each.position })}>{count(each.position)}</a>{" "}
      <Text value={each.type} isShort />{" "}
      <span class="quiet">
        <Time at={each.time} />
      </span>
    </li>
  );
  return (
    <>
      <p>
        <a href={linkTo("events", { log })}>← back to the tail</a>
      </p>
      <div class="columns wide-first">
        <Panel
          title={
            <>
              Event {count(event.position)}: <Text value={event.type} />
            </>
          }
        >
          <Facts
            facts={[
              ["Time", <Time at={event.time} />],
              ["Id", <Text value={event.id} />],
              ["Tags", event.tags.length === 0 ? undefined : <Tags tags={event.tags} />],
            ]}
          />
          <h3>Data</h3>
          <Json value={event.data} label="Data of the event" />
          {Object.keys(metadata).length === 0 ? null : (
            <>
              <h3>Metadata</h3>
              <Json value={metadata} label="Metadata of the event" />
            </>
          )}
        </Panel>
        <div>
          <Panel title="Causation">
            {cause === undefined ? (
              <p class="empty">
                {causationId === undefined
                  ? "It names no cause."
                  : "Its cause is not among the 1,000 events before it."}
              </p>
            ) : (
              <>
                <h3>Caused by</h3>
                <ul class="plain">{link(cause)}</ul>
              </>
            )}
            {effects.length === 0 ? null : (
              <>
                <h3>Effects</h3>
                <ul class="plain">{effects.slice(0, 20).map(link)}</ul>
              </>
            )}
            {typeof correlationId === "string" ? <Facts facts={[["Story", <Text value={correlationId} />]]} /> : null}
          </Panel>
          <Panel title="Neighbours">
            <ul class="plain">{surrounding.map(link)}</ul>
          </Panel>
        </div>
      </div>
    </>
  );
}

interface Follower {
  readonly name: string;
  readonly position?: number;
  readonly lag?: number;
  readonly holder?: Holder;
  readonly problem?: string;
}

function Followers({ log, at }: { log: Log; at: At }): JSX.Element {
  const { data, error } = useData<{
    consumers: readonly (Follower & { waiting: readonly Holder[] })[];
    models: readonly (Follower & { version?: number })[];
  }>("consumers", { log: log.name }, log.head);
  const progress = ({ position, lag, problem }: Follower): JSX.Element =>
    problem === undefined ? (
      <>
        {count(position)}{" "}
        {lag === undefined ? null : (
          <Badge tone={lag === 0 ? "good" : "busy"}>{lag === 0 ? "up to date" : `${count(lag)} behind`}</Badge>
        )}
      </>
    ) : (
      <Text value={problem} />
    );
  const runs = ({ holder }: Follower): JSX.Element =>
    holder === undefined ? <Badge tone="quiet">not running</Badge> : <HolderName holder={holder} />;
  return (
    <>
      <Panel title="Consumers">
        <Trouble error={error} />
        <Table
          caption="Consumers"
          rows={data?.consumers ?? []}
          keyOf={({ name }) => name}
          empty="No consumer was ever started."
          columns={[
            { title: "Name", cell: ({ name }) => <Text value={name} isShort /> },
            { title: "Position", cell: progress },
            { title: "Process", cell: runs },
            { title: "Waiting", kind: "number", cell: ({ waiting }) => waiting.length },
          ]}
        />
      </Panel>
      <Panel title="Read models">
        <Table
          caption="Read models"
          rows={data?.models ?? []}
          keyOf={({ name }) => name}
          empty="This log has no read models."
          isCurrent={({ name }) => name === at["model"]}
          columns={[
            {
              title: "Name",
              cell: ({ name }) => (
                <a href={linkTo("events", { log: log.name, model: name })}>
                  <Text value={name} isShort />
                </a>
              ),
            },
            { title: "Position", cell: progress },
            { title: "Process", cell: runs },
            { title: "Version", kind: "number", cell: ({ version }) => version ?? "building" },
          ]}
        />
      </Panel>
    </>
  );
}

interface Document {
  readonly key: string;
  readonly position: number;
  readonly tags: readonly string[];
  readonly state: unknown;
}

function Documents({ log, model, at }: { log: string; model: string; at: At }): JSX.Element {
  const { key = "", skip } = at;
  const { data, error } = useData<{ documents: readonly Document[]; next?: number }>("documents", {
    log,
    model,
    key,
    skip,
  });
  const go = (more: Record<string, string | number | undefined>): void => {
    location.hash = linkTo("events", { log, model, key, ...more });
  };
  return (
    <Panel
      title={
        <>
          Documents of <Text value={model} />
        </>
      }
    >
      <Filters
        fields={[{ name: "key", title: "Key", value: key }]}
        onChange={(values) => go({ ...values, skip: undefined })}
      />
      <Trouble error={error} />
      <Table
        caption="Documents"
        rows={data?.documents ?? []}
        keyOf={(document) => document.key}
        empty="No documents."
        columns={[
          { title: "Key", cell: (document) => <Text value={document.key} isShort /> },
          {
            title: "Event",
            kind: "number",
            cell: ({ position }) => <a href={linkTo("events", { log, position })}>{count(position)}</a>,
          },
          { title: "State", kind: "wide", cell: ({ state }) => <Text value={JSON.stringify(state)} isShort /> },
        ]}
      />
      <Pager
        next={data?.next !== undefined}
        isFirst={skip === undefined}
        onNext={() => go({ skip: data?.next })}
        onFirst={() => go({ skip: undefined })}
      />
    </Panel>
  );
}
