// The JSON that the console sends to the page. Times are ISO texts.

export interface Holder {
  readonly id: string;
  readonly name?: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly lastSeenAt: string;
  readonly version: string;
  readonly leaseMs?: number;
  readonly state: "alive" | "silent" | "dead";
}
export interface Claim {
  readonly path: string;
  readonly mode: "exact" | "tree";
  readonly shared: boolean;
  readonly holder: Holder;
  readonly since: string;
}
export interface Lock extends Claim {
  readonly tag?: string;
  readonly holdId: string;
  readonly fence: number;
  readonly waiting: readonly Claim[];
}
export interface Log {
  readonly name: string;
  readonly head?: number;
  readonly bytes?: number;
  readonly perSecond?: number;
  readonly problem?: string;
}
export type State = "incoming" | "delayed" | "processing" | "archive" | "error";
export interface Stats extends Readonly<Record<State, number>> {
  readonly holders: number;
  readonly oldestIncomingMs?: number;
  readonly paused: boolean;
  readonly pauseReason?: string;
}
export interface Box {
  readonly name: string;
  readonly stats?: Stats;
  readonly problem?: string;
}
export interface Sample {
  readonly at: string;
  readonly holders: readonly Holder[];
  readonly locks: readonly Lock[];
  readonly logs: readonly Log[];
  readonly boxes: readonly Box[];
  readonly changes?: number;
  readonly problems: readonly string[];
}
export interface Counters {
  readonly atMs: number;
  readonly events: number;
  readonly done: number;
  readonly failed: number;
  readonly changes: number;
  readonly locks: number;
}
export interface Activity {
  readonly at: string;
  readonly kind: "process" | "lock" | "event" | "ticket" | "file";
  readonly part: string;
  readonly what: string;
  readonly subject: string;
  readonly by?: string;
  readonly detail?: string;
  readonly ref?: string;
}
export interface StoredEvent {
  readonly position: number;
  readonly type: string;
  readonly time: string;
  readonly id: string;
  readonly tags: readonly string[];
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
}
export type EventSummary = Pick<StoredEvent, "position" | "type" | "time" | "tags">;
export interface TicketFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}
export interface Ticket {
  readonly id: string;
  readonly key: string;
  readonly state: State;
  readonly attempt: number;
  readonly createdAt: string;
  readonly producer: { readonly host: string; readonly pid: number; readonly name?: string };
  readonly group?: string;
  readonly priority: number;
  readonly notBefore?: string;
  readonly expiresAt?: string;
  readonly meta?: unknown;
  readonly files: readonly TicketFile[];
  readonly outputs: readonly TicketFile[];
  readonly holder?: Holder;
  readonly progress?: unknown;
  readonly result?: unknown;
  readonly duplicate: boolean;
  readonly damaged?: string;
  readonly history: readonly {
    readonly attempt: number;
    readonly at: string;
    readonly outcome: "retry" | "fail" | "lost" | "expired" | "mismatch";
    readonly reason: string;
  }[];
}
export interface Version {
  readonly key: string;
  readonly versionId: string;
  readonly etag: string;
  readonly size: number;
  readonly lastModified: string;
  readonly deleteMarker: boolean;
  readonly isLatest: boolean;
  readonly contentType?: string;
  readonly legalHold?: boolean;
  readonly retention?: { readonly mode: string; readonly until: string };
}
export interface FileEntry {
  readonly path: string;
  readonly directory: boolean;
  readonly size: number;
  readonly modifiedAt: string;
  readonly indexed: boolean;
  readonly stamp?: string;
}
export interface Change {
  readonly number: number;
  readonly kind: string;
  readonly path: string;
  readonly from?: string;
  readonly by?: { readonly name?: string; readonly host: string; readonly pid: number };
  readonly at?: string;
  readonly damaged?: string;
}
