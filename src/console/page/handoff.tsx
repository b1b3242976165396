// The hand-off: boxes with their counts, tickets with filters, one ticket with its history, and
// replay and discard of one, a selection, or all that match.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { addressOf, get, useData, type Parameters } from "./api.ts";
import { ask } from "./dialog.tsx";
import { ago, bytes, count, duration } from "./format.ts";
import type { Box, State, Ticket } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import {
  Badge,
  Facts,
  Files,
  Filters,
  HolderName,
  Json,
  linkTo,
  Pager,
  Panel,
  plural,
  StateBadge,
  stateWords,
  Table,
  Tabs,
  Text,
  Time,
  Trouble,
  useSelection,
  Waiting,
} from "./parts.tsx";

type Tickets = { readonly tickets: readonly Ticket[]; readonly next?: number };
const states = ["error", "incoming", "delayed", "processing", "archive"] as const;
/** Maximum number of tickets per request. */
const batch = 200;
const allMax = 10_000;

export function HandoffView({ live, at, allowActions }: ViewProps): JSX.Element {
  const { data, error, reload } = useData<{ boxes: readonly Box[] }>("boxes", {}, live.sample?.boxes);
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const [first] = data.boxes;
  if (first === undefined) return <p class="empty">This store has no boxes.</p>;
  const box = data.boxes.find(({ name }) => name === at["box"]) ?? first;
  return (
    <>
      <Tabs
        label="Boxes"
        tabs={data.boxes.map(({ name, stats }) => ({
          title: (
            <>
              <Text value={name} isShort />{" "}
              {stats !== undefined && stats.error > 0 ? (
                <span class="mark bad">
                  {count(stats.error)}
                  <span class="unseen"> failed</span>
                </span>
              ) : null}
            </>
          ),
          to: linkTo("handoff", { box: name }),
          isOn: name === box.name,
        }))}
      />
      {at["id"] === undefined ? (
        <>
          <BoxHead box={box} allowActions={allowActions} onDone={reload} />
          <TicketList key={box.name} box={box} at={at} allowActions={allowActions} onDone={reload} />
        </>
      ) : (
        <OneTicket box={box} id={at["id"]} allowActions={allowActions} onDone={reload} />
      )}
    </>
  );
}

function BoxHead({ box, allowActions, onDone }: { box: Box; allowActions: boolean; onDone: () => void }): JSX.Element {
  const { name, stats, problem } = box;
  if (stats === undefined)
    return problem === undefined ? <p class="quiet">Counting the tickets …</p> : <Trouble error={problem} />;
  const { paused, pauseReason, holders, oldestIncomingMs } = stats;
  return (
    <p class="line">
      {paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">open</Badge>}
      {pauseReason === undefined ? null : <Text value={pauseReason} />}
      <span class="quiet">
        {plural(holders, "worker")}
        {oldestIncomingMs === undefined ? "" : `, oldest waits ${duration(oldestIncomingMs)}`}
      </span>
      {!allowActions ? null : paused ? (
        <button
          type="button"
          onClick={() =>
            ask({
              title: "Resume a box",
              subject: name,
              verb: "Resume",
              consequence: "Workers on all machines claim tickets of this box again.",
              requests: [{ action: "actions/resume", body: { box: name } }],
              onDone,
            })
          }
        >
          Resume …
        </button>
      ) : (
        <button
          type="button"
          onClick={() =>
            ask({
              title: "Pause a box",
              subject: name,
              verb: "Pause",
              consequence:
                "Workers on all machines finish the tickets in progress and claim no new ones until somebody resumes the box. Producers can still publish.",
              ask: { name: "reason", title: "Reason, for others" },
              requests: [{ action: "actions/pause", body: { box: name } }],
              onDone,
            })
          }
        >
          Pause …
        </button>
      )}
    </p>
  );
}

function TicketList({
  box,
  at,
  allowActions,
  onDone,
}: {
  box: Box;
  at: ViewProps["at"];
  allowActions: boolean;
  onDone: () => void;
}): JSX.Element {
  const { name, stats } = box;
  const given = states.find((each) => each === at["state"]);
  // Stays when the last failed ticket is replayed: the list must not change under its reader.
  const opened = useRef<State>(undefined);
  if (stats !== undefined) opened.current ??= stats.error === 0 ? "incoming" : "error";
  const state = given ?? opened.current ?? "error";
  const { key = "", group = "", minutes = "", skip } = at;
  const filter: Parameters = { box: name, state, key, group, minutes };
  const { data, error, reload } = useData<Tickets>("tickets", { ...filter, skip }, stats);
  const [selected, select] = useSelection(JSON.stringify([filter, skip]));
  const go = (more: Record<string, string | number | undefined>): void => {
    location.hash = linkTo("handoff", { box: name, state, key, group, minutes, ...more });
  };
  const tickets = data?.tickets ?? [];
  const canAct = allowActions && (state === "error" || state === "archive");
  const ids = [...selected].filter((id) => tickets.some((ticket) => ticket.id === id));
  const done = (): void => {
    select([]);
    reload();
    onDone();
  };
  const isFiltered = key !== "" || group !== "" || minutes !== "";
  return (
    <Panel
      title="Tickets"
      aside={
        <Tabs
          label="States"
          tabs={states.map((each) => ({
            title: (
              <>
                {stateWords[each].word} <span class="quiet">{count(stats?.[each])}</span>
              </>
            ),
            to: linkTo("handoff", { box: name, state: each }),
            isOn: each === state,
          }))}
        />
      }
    >
      <Filters
        fields={[
          { name: "key", title: "Key has", value: key },
          { name: "group", title: "Group", value: group },
          { name: "minutes", title: "Minimum age in minutes", value: minutes, kind: "number" },
        ]}
        onChange={(values) => go({ ...values, skip: undefined })}
      />
      <Trouble error={error} />
      {canAct ? (
        <p class="line">
          <Act
            verb="replay"
            ids={ids}
            box={name}
            from={state}
            onDone={done}
            label={`Replay selected (${ids.length}) …`}
          />
          <Act
            verb="discard"
            ids={ids}
            box={name}
            from={state}
            onDone={done}
            label={`Discard selected (${ids.length}) …`}
          />
          <ActOnAll verb="replay" filter={filter} isFiltered={isFiltered} number={stats?.[state] ?? 0} onDone={done} />
          <ActOnAll verb="discard" filter={filter} isFiltered={isFiltered} number={stats?.[state] ?? 0} onDone={done} />
        </p>
      ) : null}
      {data === undefined ? <Waiting /> : null}
      {data === undefined ? null : (
        <Table
          caption={`Tickets of the box ${name}, ${stateWords[state].word}`}
          rows={tickets}
          keyOf={({ id }) => id}
          empty={
            data.next !== undefined
              ? "No tickets on this page match. Look at the next one."
              : isFiltered
                ? "No tickets match."
                : "No tickets in this state."
          }
          isCurrent={({ id }) => selected.has(id)}
          columns={[
            ...(canAct
              ? [
                  {
                    title: "Select",
                    kind: "check" as const,
                    cell: ({ id, key: label }: Ticket) => (
                      <input
                        type="checkbox"
                        aria-label={`Select ${label}`}
                        checked={selected.has(id)}
                        onChange={({ currentTarget: { checked } }) =>
                          select(checked ? [...selected, id] : [...selected].filter((each) => each !== id))
                        }
                      />
                    ),
                  },
                ]
              : []),
            {
              title: "Key",
              kind: "wide",
              cell: ({ id, key: text }) => (
                <a href={linkTo("handoff", { box: name, id })}>
                  <Text value={text === "" ? id : text} isShort />
                </a>
              ),
            },
            { title: "Published", cell: ({ createdAt }) => <Time at={createdAt} /> },
            { title: "Attempt", kind: "number", cell: ({ attempt }) => attempt },
            { title: "Group", cell: ({ group: text }) => (text === undefined ? "" : <Text value={text} isShort />) },
            { title: "Files", kind: "number", cell: ({ files }) => files.length },
            {
              title: state === "processing" ? "Worker" : "Last reason",
              kind: "wide",
              cell: (ticket) => <Last ticket={ticket} />,
            },
          ]}
        />
      )}
      <Pager
        next={data?.next !== undefined}
        isFirst={skip === undefined}
        onNext={() => go({ skip: data?.next })}
        onFirst={() => go({ skip: undefined })}
      />
    </Panel>
  );
}

function Last({ ticket: { holder, history, state, damaged, notBefore } }: { ticket: Ticket }): JSX.Element {
  const last = history.at(-1);
  if (damaged !== undefined) return <Text value={damaged} isShort />;
  if (state === "processing")
    return holder === undefined ? <span class="quiet">parked</span> : <HolderName holder={holder} />;
  if (last === undefined)
    return notBefore === undefined ? (
      <span class="quiet">–</span>
    ) : (
      <>
        due <Time at={notBefore} />
      </>
    );
  return <Text value={last.reason} isShort />;
}

type Verb = "replay" | "discard";

const words = {
  replay: {
    verb: "Replay",
    error: "returns to the queue with a new count of attempts, and the next free worker gets it.",
    archive:
      "returns to the queue although it is done: its handler runs again, and its result gets a new entry in the ledger.",
  },
  discard: {
    verb: "Discard",
    error: "is removed permanently, with its files and its history. Its key can be published again.",
    archive: "is removed permanently, with its files and its history. The ledger keeps its key and its result.",
  },
} as const;

function consequenceOf(verb: Verb, from: "error" | "archive", number: number): string {
  return `${number === 1 ? "It" : "Each"} ${words[verb][from]}`;
}

interface ActProps {
  readonly verb: Verb;
  readonly ids: readonly string[];
  readonly box: string;
  readonly from: State;
  readonly label: string;
  readonly onDone: () => void;
  readonly subject?: string;
}

function Act({ verb, ids, box, from, label, onDone, subject }: ActProps): JSX.Element | null {
  if (from !== "error" && from !== "archive") return null;
  return (
    <button
      type="button"
      class={verb === "discard" ? "danger" : undefined}
      disabled={ids.length === 0}
      onClick={() =>
        ask({
          title: `${words[verb].verb} ${plural(ids.length, "ticket")}`,
          subject: subject ?? `${plural(ids.length, "ticket")} of the box ${box}`,
          consequence: consequenceOf(verb, from, ids.length),
          verb: words[verb].verb,
          isDangerous: verb === "discard",
          requests: batchesOf(ids).map((some) => ({ action: `actions/${verb}`, body: { box, from, ids: some } })),
          onDone,
        })
      }
    >
      {label}
    </button>
  );
}

/** Without a filter, the box acts on all tickets itself. With a filter, the page collects the matching ones. */
function ActOnAll({
  verb,
  filter,
  isFiltered,
  number,
  onDone,
}: {
  verb: Verb;
  filter: Parameters;
  isFiltered: boolean;
  number: number;
  onDone: () => void;
}): JSX.Element | null {
  const [isBusy, setBusy] = useState(false);
  const { box, state } = filter;
  if (state !== "error" && state !== "archive") return null;
  const start = async (): Promise<void> => {
    setBusy(true);
    const found = isFiltered ? await matching(filter).catch(() => []) : undefined;
    setBusy(false);
    const size = found?.length ?? number;
    const bodies = found === undefined ? [{ all: true }] : batchesOf(found).map((ids) => ({ ids }));
    ask({
      title: `${words[verb].verb} ${isFiltered ? "all that match" : "all"}`,
      subject: `${plural(size, "ticket")} of the box ${String(box)}`,
      consequence: `${consequenceOf(verb, state, size)}${size < allMax || found === undefined ? "" : ` Only these ${count(allMax)} at a time: repeat it for the others.`}`,
      verb: `${words[verb].verb} ${count(size)}`,
      isDangerous: verb === "discard",
      requests: bodies.map((body) => ({ action: `actions/${verb}`, body: { box, from: state, ...body } })),
      onDone,
    });
  };
  return (
    <button
      type="button"
      class={verb === "discard" ? "danger" : undefined}
      disabled={isBusy || number === 0}
      onClick={() => void start()}
    >
      {words[verb].verb} all{isFiltered ? " that match" : ""} …
    </button>
  );
}

async function matching(filter: Parameters): Promise<string[]> {
  const ids: string[] = [];
  for (let skip: number | undefined = 0; skip !== undefined && ids.length < allMax;) {
    const page: Tickets = await get<Tickets>("tickets", { ...filter, skip, limit: batch });
    ids.push(...page.tickets.map(({ id }) => id));
    skip = page.next;
  }
  return ids;
}

function batchesOf(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / batch) }, (_, index) =>
    ids.slice(index * batch, (index + 1) * batch),
  );
}

function OneTicket({
  box: { name, stats },
  id,
  allowActions,
  onDone,
}: {
  box: Box;
  id: string;
  allowActions: boolean;
  onDone: () => void;
}): JSX.Element {
  const { data, error, reload } = useData<{ ticket: Ticket }>("ticket", { box: name, id }, stats);
  const back = (
    <p>
      <a href={linkTo("handoff", { box: name, state: data?.ticket.state })}>← back to the tickets</a>
    </p>
  );
  if (data === undefined)
    return (
      <>
        {back}
        {error === undefined ? <Waiting /> : <Trouble error={error} />}
      </>
    );
  const { ticket } = data;
  const { key, state, group, priority, producer, createdAt, expiresAt, attempt, holder, duplicate, damaged } = ticket;
  const reason = state === "archive" ? undefined : ticket.history.at(-1)?.reason;
  const done = (): void => {
    reload();
    onDone();
  };
  return (
    <>
      {back}
      <Trouble error={error} />
      <div class="columns wide-first">
        <div>
          <Panel title={<Text value={key === "" ? id : key} />} aside={<StateBadge state={state} />}>
            <Trouble error={damaged} />
            {allowActions && (state === "error" || state === "archive") ? (
              <p class="line">
                <Act verb="replay" ids={[id]} box={name} from={state} subject={key} onDone={done} label="Replay …" />
                <Act verb="discard" ids={[id]} box={name} from={state} subject={key} onDone={done} label="Discard …" />
              </p>
            ) : null}
            <Facts
              facts={[
                ["Last reason", reason === undefined ? undefined : <Text value={reason} />],
                ["Id", <code>{id}</code>],
                [
                  "Published",
                  <>
                    <Time at={createdAt} /> by <HolderName holder={producer} />
                  </>,
                ],
                ["Group", group === undefined ? undefined : <Text value={group} />],
                ["Priority", priority],
                ["Attempt", attempt],
                ["Expires", expiresAt === undefined ? undefined : <Time at={expiresAt} />],
                ["Worker", holder === undefined ? undefined : <HolderName holder={holder} />],
                ["Duplicate", duplicate ? "yes: another ticket with its key was done" : undefined],
              ]}
            />
            <Piece title="Meta" value={ticket.meta} />
            <Piece title="Progress" value={ticket.progress} />
            <Piece title="Result" value={ticket.result} />
          </Panel>
          <Panel title="Files">
            <FileTable ticket={ticket} box={name} />
          </Panel>
        </div>
        <Panel title="Timeline">
          <Timeline ticket={ticket} />
        </Panel>
      </div>
    </>
  );
}

function Piece({ title, value }: { title: string; value: unknown }): JSX.Element | null {
  if (value === undefined) return null;
  return (
    <>
      <h3>{title}</h3>
      <Json value={value} label={title} />
    </>
  );
}

function FileTable({ ticket: { id, files, outputs }, box }: { ticket: Ticket; box: string }): JSX.Element {
  return (
    <>
      <Table
        caption="Files of the ticket"
        rows={files}
        keyOf={({ name }) => name}
        empty="This ticket has no files."
        columns={[
          {
            title: "Name",
            kind: "wide",
            cell: ({ name }) => (
              <a href={addressOf("ticket-file", { box, id, name })} download>
                <Text value={name} />
              </a>
            ),
          },
          { title: "Size", kind: "number", cell: ({ size }) => bytes(size) },
          { title: "SHA-256", cell: ({ sha256 }) => <code title={sha256}>{sha256.slice(0, 12)}…</code> },
        ]}
      />
      {outputs.length === 0 ? null : (
        <>
          <h3>Outputs of the handler</h3>
          <Files files={outputs} hrefOf={(name) => addressOf("ticket-file", { box, id, name, output: 1 })} />
        </>
      )}
    </>
  );
}

const outcomes = {
  retry: { word: "will be retried", tone: "warn" },
  fail: { word: "failed", tone: "bad" },
  lost: { word: "its worker died", tone: "bad" },
  expired: { word: "too old", tone: "bad" },
  mismatch: { word: "files do not match the manifest", tone: "bad" },
} as const;

function Timeline({ ticket }: { ticket: Ticket }): JSX.Element {
  const { createdAt, history, state, attempt, notBefore } = ticket;
  return (
    <ol class="timeline">
      <li>
        <Badge tone="quiet">published</Badge> <Time at={createdAt} /> <span class="quiet">{ago(createdAt)}</span>
      </li>
      {history.map(({ attempt: number, at, outcome, reason }) => (
        <li>
          <Badge tone={outcomes[outcome].tone}>{outcomes[outcome].word}</Badge> <Time at={at} />{" "}
          <span class="quiet">attempt {number}</span>
          <p class="reason">
            <Text value={reason} />
          </p>
        </li>
      ))}
      <li>
        <span class="quiet">now</span> <StateBadge state={state} />{" "}
        <span class="quiet">
          {state === "processing" ? `attempt ${attempt}` : ""}
          {state === "delayed" && notBefore !== undefined ? (
            <>
              due <Time at={notBefore} />
            </>
          ) : null}
        </span>
      </li>
    </ol>
  );
}
