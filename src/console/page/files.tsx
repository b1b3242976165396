// The files: the tree, live changes, search, one file with its locks and stamp, sessions, and work
// that was given up.
import type { JSX } from "preact";
import { addressOf, useData } from "./api.ts";
import { bytes, count, duration } from "./format.ts";
import type { Change, FileEntry, Lock } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import {
  Badge,
  Facts,
  Filters,
  HolderName,
  linkTo,
  Pager,
  Panel,
  Table,
  Text,
  Time,
  Trouble,
  Waiting,
} from "./parts.tsx";

export function FilesView({ live, at }: ViewProps): JSX.Element {
  const { path, session, text = "", under = "" } = at;
  if (live.sample !== undefined && live.sample.changes === undefined)
    return <p class="empty">This store has no files yet.</p>;
  return (
    <>
      <Filters
        verb="Search"
        fields={[
          { name: "text", title: "Words", value: text, hint: "words in the files" },
          { name: "under", title: "In the folder", value: under },
        ]}
        onChange={(values) => (location.hash = linkTo("files", values))}
      />
      <div class="columns wide-first">
        <div>
          {session !== undefined ? (
            <OneSession id={session} />
          ) : path !== undefined ? (
            <OneFile path={path} live={live} />
          ) : text !== "" ? (
            <Hits text={text} under={under} />
          ) : (
            <Directory under={under} skip={at["skip"]} changes={live.sample?.changes} />
          )}
        </div>
        <div>
          <Changes changes={live.sample?.changes} />
          <Work changes={live.sample?.changes} />
        </div>
      </div>
    </>
  );
}

function Crumbs({ path }: { path: string }): JSX.Element {
  const names = path.split("/").filter((name) => name !== "");
  return (
    <nav class="crumbs" aria-label="Folder">
      <a href={linkTo("files")}>files</a>
      {names.map((name, index) => (
        <>
          {" / "}
          <a href={linkTo("files", { under: names.slice(0, index + 1).join("/") })}>
            <Text value={name} isShort />
          </a>
        </>
      ))}
    </nav>
  );
}

function Directory({
  under,
  skip,
  changes,
}: {
  under: string;
  skip: string | undefined;
  changes: number | undefined;
}): JSX.Element {
  const { data, error } = useData<{ entries: readonly FileEntry[]; problems?: readonly string[]; next?: number }>(
    "files",
    { under, skip },
    changes,
  );
  const go = (to: number | undefined): void => {
    location.hash = linkTo("files", { under, skip: to });
  };
  return (
    <Panel title="Tree">
      <Crumbs path={under} />
      <Trouble error={error} />
      {data?.problems?.map((problem) => (
        <Trouble error={problem} />
      ))}
      {data === undefined && error === undefined ? <Waiting /> : null}
      {data === undefined ? null : (
        <Table
          caption="Files and folders"
          rows={data.entries}
          keyOf={({ path }) => path}
          empty="This folder is empty."
          columns={[
            {
              title: "Name",
              kind: "wide",
              cell: ({ path, directory }) => (
                <a href={linkTo("files", directory ? { under: path } : { path })}>
                  <Text value={`${path.slice(path.lastIndexOf("/") + 1)}${directory ? "/" : ""}`} isShort />
                </a>
              ),
            },
            { title: "Size", kind: "number", cell: ({ size, directory }) => (directory ? "" : bytes(size)) },
            { title: "Modified", cell: ({ modifiedAt }) => <Time at={modifiedAt} /> },
            {
              title: "Index",
              cell: ({ indexed, directory }) => (indexed && !directory ? <Badge tone="good">indexed</Badge> : ""),
            },
          ]}
        />
      )}
      <Pager
        next={data?.next !== undefined}
        isFirst={skip === undefined}
        onNext={() => go(data?.next)}
        onFirst={() => go(undefined)}
      />
    </Panel>
  );
}

function Hits({ text, under }: { text: string; under: string }): JSX.Element {
  const { data, error } = useData<{ hits: readonly { path: string; score: number; excerpt?: string }[] }>("search", {
    text,
    under,
  });
  return (
    <Panel
      title={
        <>
          Hits for “<Text value={text} />”
        </>
      }
    >
      <Trouble error={error} />
      {data === undefined && error === undefined ? <Waiting /> : null}
      {data === undefined ? null : (
        <Table
          caption="Hits"
          rows={data.hits}
          keyOf={({ path }) => path}
          empty="No file has these words. What was written a moment ago may not be indexed yet."
          columns={[
            {
              title: "File",
              cell: ({ path }) => (
                <a href={linkTo("files", { path })}>
                  <Text value={path} isShort />
                </a>
              ),
            },
            {
              title: "Excerpt",
              kind: "wide",
              cell: ({ excerpt = "" }) => <Text value={excerpt.replaceAll(/\s+/g, " ")} />,
            },
          ]}
        />
      )}
    </Panel>
  );
}

function OneFile({ path, live }: { path: string; live: ViewProps["live"] }): JSX.Element {
  const { data, error } = useData<{ info: FileEntry; locks: readonly Lock[]; text?: string }>("file", { path }, [
    live.sample?.changes,
    live.sample?.locks,
  ]);
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  return (
    <>
      <p>
        <a href={linkTo("files", { under: folder })}>← back to the folder</a>
      </p>
      <Panel
        title={<Text value={path} />}
        aside={
          data === undefined ? undefined : (
            <a href={addressOf("file-content", { path })} download>
              Download
            </a>
          )
        }
      >
        <Trouble error={error} />
        {data === undefined ? null : (
          <>
            <Facts
              facts={[
                ["Size", bytes(data.info.size)],
                ["Modified", <Time at={data.info.modifiedAt} />],
                ["Stamp", data.info.stamp === undefined ? undefined : <code>{data.info.stamp}</code>],
                [
                  "Index",
                  data.info.indexed ? <Badge tone="good">indexed</Badge> : <Badge tone="quiet">not indexed</Badge>,
                ],
              ]}
            />
            <h3>Locks that concern it</h3>
            {data.locks.length === 0 ? <p class="empty">None.</p> : null}
            <ul class="plain">
              {data.locks.map(({ path: locked, holder, since, waiting }) => (
                <li>
                  <a href={linkTo("locks")}>
                    <Text value={locked === "" ? "the whole tree" : locked} />
                  </a>{" "}
                  held by <HolderName holder={holder} /> for {duration(Date.now() - Date.parse(since))}
                  {waiting.length === 0 ? null : `, ${waiting.length} waiting`}
                </li>
              ))}
            </ul>
            {data.text === undefined ? (
              <p class="empty">Not shown: it is no UTF-8 text, or larger than 64 KiB.</p>
            ) : (
              <pre class="json" tabIndex={0} aria-label="Content of the file">
                {data.text.split("\n").map((line) => (
                  <>
                    <Text value={line === "" ? " " : line} />
                    {"\n"}
                  </>
                ))}
              </pre>
            )}
          </>
        )}
      </Panel>
    </>
  );
}

const tones = { written: "good", moved: "busy", removed: "warn" } as const;

function Changes({ changes }: { changes: number | undefined }): JSX.Element {
  const { data, error } = useData<{ changes: readonly Change[]; last: number }>("changes", { limit: 20 }, changes);
  return (
    <Panel title="Latest changes" aside={<span class="quiet">{count(data?.last)} in all</span>}>
      <Trouble error={error} />
      <Table
        caption="Latest changes"
        rows={data?.changes ?? []}
        keyOf={({ number }) => number}
        empty="No changes yet."
        columns={[
          { title: "Change", cell: ({ kind }) => <Badge tone={tones[kind as "written"] ?? "quiet"}>{kind}</Badge> },
          {
            title: "Path",
            kind: "wide",
            cell: ({ kind, path, from }) => (
              <>
                {kind === "removed" ? (
                  <Text value={path} isShort />
                ) : (
                  <a href={linkTo("files", { path })}>
                    <Text value={path} isShort />
                  </a>
                )}
                {from === undefined ? null : (
                  <span class="quiet">
                    {" "}
                    from <Text value={from} isShort />
                  </span>
                )}
              </>
            ),
          },
          { title: "By", cell: ({ by }) => (by === undefined ? "" : <HolderName holder={by} />) },
          { title: "Time", cell: ({ at }) => <Time at={at} /> },
        ]}
      />
    </Panel>
  );
}

interface GivenUp {
  readonly task: string;
  readonly path: string;
  readonly reason: string;
}

function Work({ changes }: { changes: number | undefined }): JSX.Element {
  const { data, error } = useData<{ givenUp: readonly GivenUp[]; sessions: readonly string[] }>(
    "files-work",
    {},
    changes,
  );
  return (
    <>
      <Panel title="Work that was given up">
        <Trouble error={error} />
        <Table
          caption="Dead letters of the index"
          rows={data?.givenUp ?? []}
          keyOf={({ task, path }) => `${task} ${path}`}
          empty="None: everything is indexed, or will be."
          columns={[
            { title: "Task", cell: ({ task }) => task },
            { title: "Path", cell: ({ path }) => <Text value={path} isShort /> },
            { title: "Reason", kind: "wide", cell: ({ reason }) => <Text value={reason} isShort /> },
          ]}
        />
      </Panel>
      {data === undefined || data.sessions.length === 0 ? null : (
        <Panel title="Sessions">
          <ul class="plain">
            {data.sessions.map((id) => (
              <li>
                <a href={linkTo("files", { session: id })}>
                  <Text value={id} isShort />
                </a>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

interface SessionData {
  readonly messages: readonly { readonly role: string; readonly content: string; readonly at?: string }[];
  readonly archives: readonly {
    readonly number: number;
    readonly user?: string;
    readonly summary?: string;
    readonly damaged?: string;
    readonly messages: number;
  }[];
}

function OneSession({ id }: { id: string }): JSX.Element {
  const { data, error } = useData<SessionData>("session", { id });
  return (
    <>
      <p>
        <a href={linkTo("files")}>← back to the files</a>
      </p>
      <Panel
        title={
          <>
            Session <Text value={id} />
          </>
        }
      >
        <Trouble error={error} />
        {data === undefined && error === undefined ? <Waiting /> : null}
        <h3>Archives</h3>
        <Table
          caption="Archives"
          rows={data?.archives ?? []}
          keyOf={({ number }) => number}
          empty="Nothing is archived."
          columns={[
            { title: "Number", kind: "number", cell: ({ number }) => number },
            { title: "Messages", kind: "number", cell: ({ messages }) => messages },
            { title: "User", cell: ({ user = "" }) => (user === "" ? "" : <Text value={user} />) },
            {
              title: "Summary",
              kind: "wide",
              cell: ({ summary = "–", damaged }) => <Text value={damaged ?? summary} />,
            },
          ]}
        />
        <h3>Messages that are not archived</h3>
        <ul class="plain">
          {data?.messages.map(({ role, content, at }) => (
            <li>
              <Text value={role} />{" "}
              <span class="quiet">
                <Time at={at} />
              </span>
              <p class="reason">
                <Text value={content} />
              </p>
            </li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
