// The objects: buckets, keys by prefix, the versions of a key on a line, uploads and settings.
import type { JSX } from "preact";
import { addressOf, useData } from "./api.ts";
import { ask } from "./dialog.tsx";
import { bytes, plural } from "./format.ts";
import type { Version } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import {
  Badge,
  Facts,
  Filters,
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

interface BucketInfo {
  readonly name: string;
  readonly createdAt: string;
  readonly versioning: string;
  readonly problem?: string;
}
interface Settings {
  readonly versioning: string;
  readonly objectLock: boolean;
  readonly defaultRetention?: { readonly mode: string; readonly days: number };
  readonly lifecycle: readonly object[];
  readonly tags: Readonly<Record<string, string>>;
}
interface Upload {
  readonly id: string;
  readonly key: string;
  readonly startedAt: string;
  readonly initiator?: string;
  readonly problem?: string;
}
interface Keys {
  readonly prefixes: readonly string[];
  readonly objects: readonly Version[];
  readonly damaged?: readonly { readonly key: string; readonly problem: string }[];
  readonly next?: string;
}

export function ObjectsView({ at, allowActions }: ViewProps): JSX.Element {
  const { data, error } = useData<{ buckets: readonly BucketInfo[] }>("buckets");
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const [first] = data.buckets;
  if (first === undefined) return <p class="empty">This store has no buckets.</p>;
  const bucket = data.buckets.find(({ name }) => name === at["bucket"]) ?? first;
  return (
    <>
      <Tabs
        label="Buckets"
        tabs={data.buckets.map(({ name, versioning }) => ({
          title: (
            <>
              <Text value={name} isShort /> <span class="quiet">versions {versioning}</span>
            </>
          ),
          to: linkTo("objects", { bucket: name }),
          isOn: name === bucket.name,
        }))}
      />
      <Trouble error={bucket.problem} />
      {at["key"] === undefined ? (
        <div class="columns wide-first">
          <KeyList bucket={bucket.name} at={at} />
          <SettingsPanels bucket={bucket.name} />
        </div>
      ) : (
        <Versions bucket={bucket.name} name={at["key"]} version={at["version"]} allowActions={allowActions} />
      )}
    </>
  );
}

function KeyList({ bucket, at }: { bucket: string; at: ViewProps["at"] }): JSX.Element {
  const { prefix = "", after } = at;
  const { data, error, reload } = useData<Keys>("keys", { bucket, prefix, after });
  const go = (more: Record<string, string | undefined>): void => {
    location.hash = linkTo("objects", { bucket, prefix, ...more });
  };
  const rows = [
    ...(data?.prefixes ?? []).map((key) => ({ key, object: undefined })),
    ...(data?.objects ?? []).map((object) => ({ key: object.key, object })),
  ];
  return (
    <Panel
      title="Keys"
      aside={
        <button type="button" onClick={reload}>
          Refresh
        </button>
      }
    >
      <Crumbs bucket={bucket} prefix={prefix} />
      <Filters
        fields={[{ name: "prefix", title: "Prefix", value: prefix, hint: "2026/" }]}
        onChange={(values) => go({ ...values, after: undefined })}
      />
      <Trouble error={error} />
      {data?.damaged?.map(({ key, problem }) => (
        <Trouble error={`${key}: ${problem}`} />
      ))}
      {data === undefined ? <Waiting /> : null}
      {data === undefined ? null : (
        <Table
          caption={`Keys of the bucket ${bucket}`}
          rows={rows}
          keyOf={({ key, object }) => `${object === undefined ? "/" : "="}${key}`}
          empty="No keys begin with this prefix."
          columns={[
            {
              title: "Key",
              kind: "wide",
              cell: ({ key, object }) => (
                <a href={linkTo("objects", object === undefined ? { bucket, prefix: key } : { bucket, key })}>
                  <Text value={key.slice(prefix.lastIndexOf("/") + 1)} isShort />
                </a>
              ),
            },
            { title: "Size", kind: "number", cell: ({ object }) => (object === undefined ? "" : bytes(object.size)) },
            { title: "Modified", cell: ({ object }) => <Time at={object?.lastModified} /> },
            {
              title: "Type",
              cell: ({ object }) => (
                <Text value={object?.contentType ?? (object === undefined ? "prefix" : "–")} isShort />
              ),
            },
          ]}
        />
      )}
      <Pager
        next={data?.next !== undefined}
        isFirst={after === undefined}
        onNext={() => go({ after: data?.next })}
        onFirst={() => go({ after: undefined })}
      />
    </Panel>
  );
}

function Crumbs({ bucket, prefix }: { bucket: string; prefix: string }): JSX.Element {
  const names = prefix.split("/").slice(0, -1);
  return (
    <nav class="crumbs" aria-label="Prefix">
      <a href={linkTo("objects", { bucket })}>
        <Text value={bucket} isShort />
      </a>
      {names.map((name, index) => (
        <>
          {" / "}
          <a href={linkTo("objects", { bucket, prefix: `${names.slice(0, index + 1).join("/")}/` })}>
            <Text value={name} isShort />
          </a>
        </>
      ))}
    </nav>
  );
}

function SettingsPanels({ bucket }: { bucket: string }): JSX.Element {
  const { data, error } = useData<{ settings: Settings; uploads: readonly Upload[]; hasMoreUploads: boolean }>(
    "bucket",
    { bucket },
  );
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const { settings, uploads, hasMoreUploads } = data;
  const { versioning, objectLock, defaultRetention, lifecycle, tags } = settings;
  return (
    <div>
      <Panel title="Settings">
        <Facts
          facts={[
            ["Versioning", versioning],
            ["Object lock", objectLock ? "on" : "off"],
            [
              "Retention",
              defaultRetention === undefined
                ? undefined
                : `${defaultRetention.mode}, ${plural(defaultRetention.days, "day")}`,
            ],
            ["Lifecycle", lifecycle.length === 0 ? "no rules" : plural(lifecycle.length, "rule")],
          ]}
        />
        {lifecycle.length === 0 ? null : <Json value={lifecycle} label="Lifecycle rules" />}
        {Object.keys(tags).length === 0 ? null : <Json value={tags} label="Tags of the bucket" />}
      </Panel>
      <Panel title="Uploads in progress">
        <Table
          caption="Uploads in progress"
          rows={uploads}
          keyOf={({ id }) => id}
          empty="No uploads."
          columns={[
            { title: "Key", kind: "wide", cell: ({ key, problem }) => <Text value={problem ?? key} isShort /> },
            { title: "Since", cell: ({ startedAt }) => <Time at={startedAt} /> },
            {
              title: "By",
              cell: ({ initiator }) => (initiator === undefined ? "" : <Text value={initiator} isShort />),
            },
          ]}
        />
        {hasMoreUploads ? <p class="quiet">and more</p> : null}
      </Panel>
    </div>
  );
}

interface Versioned {
  readonly versions: readonly Version[];
  readonly damaged?: readonly { readonly versionId?: string; readonly problem: string }[];
  readonly next?: string;
}

function Versions({
  bucket,
  name,
  version,
  allowActions,
}: {
  bucket: string;
  name: string;
  version: string | undefined;
  allowActions: boolean;
}): JSX.Element {
  const { data, error, reload } = useData<Versioned>("versions", { bucket, key: name, version });
  const back = linkTo("objects", { bucket, prefix: name.slice(0, name.lastIndexOf("/") + 1) });
  return (
    <>
      <p>
        <a href={back}>← back to the keys</a>
      </p>
      <Panel title={<Text value={name} />} aside={<span class="quiet">newest first</span>}>
        <Trouble error={error} />
        {data?.damaged?.map(({ versionId, problem }) => (
          <Trouble error={`${versionId ?? ""} ${problem}`} />
        ))}
        {data === undefined ? <Waiting /> : null}
        <ol class="timeline">
          {data?.versions.map((each) => (
            <li key={each.versionId}>
              <OneVersion version={each} bucket={bucket} allowActions={allowActions} onDone={reload} />
            </li>
          ))}
        </ol>
        <Pager
          next={data?.next !== undefined}
          isFirst={version === undefined}
          onNext={() => (location.hash = linkTo("objects", { bucket, key: name, version: data?.next }))}
          onFirst={() => (location.hash = linkTo("objects", { bucket, key: name }))}
        />
      </Panel>
    </>
  );
}

function OneVersion({
  version,
  bucket,
  allowActions,
  onDone,
}: {
  version: Version;
  bucket: string;
  allowActions: boolean;
  onDone: () => void;
}): JSX.Element {
  const { key, versionId, isLatest, deleteMarker, size, etag, lastModified, contentType, retention, legalHold } =
    version;
  return (
    <>
      <p class="line">
        {deleteMarker ? (
          <Badge tone="bad">deleted</Badge>
        ) : (
          <Badge tone={isLatest ? "good" : "quiet"}>{isLatest ? "current" : "older"}</Badge>
        )}
        <Time at={lastModified} />
        {deleteMarker ? null : <span>{bytes(size)}</span>}
        {contentType === undefined ? null : <Text value={contentType} isShort />}
        {retention === undefined ? null : (
          <span class="quiet">
            {retention.mode} until <Time at={retention.until} />
          </span>
        )}
        {legalHold === true ? <span class="quiet">legal hold</span> : null}
      </p>
      <p class="line quiet">
        version <code>{versionId}</code>{" "}
        {deleteMarker ? null : (
          <>
            ETag <code>{etag}</code>
          </>
        )}
      </p>
      <p class="line">
        {deleteMarker ? null : (
          <a href={addressOf("object-content", { bucket, key, version: versionId })} download>
            Download
          </a>
        )}
        {allowActions && !isLatest && !deleteMarker ? (
          <button
            type="button"
            onClick={() =>
              ask({
                title: "Restore a version",
                subject: key,
                verb: "Restore",
                consequence:
                  "A copy of this version becomes the current one. No version is removed, if the bucket has versions enabled; otherwise the current content is replaced.",
                requests: [{ action: "actions/restore", body: { bucket, key, versionId } }],
                onDone,
              })
            }
          >
            Restore …
          </button>
        ) : null}
      </p>
    </>
  );
}
