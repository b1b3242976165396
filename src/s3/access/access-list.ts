// Access control lists (ACLs): what everybody, every key pair or another account may do with a
// bucket or an object, besides its owner.
import { accountAsXml, type Accounts } from "./account.ts";
import { S3Error } from "../http/s3-error.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import type { XmlElement } from "../http/xml-in.ts";
import type { XmlContent } from "../http/xml-out.ts";

const permissions = ["READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"] as const;
export type Permission = (typeof permissions)[number];

const groups = {
  everybody: "http://acs.amazonaws.com/groups/global/AllUsers",
  authenticated: "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
  logs: "http://acs.amazonaws.com/groups/s3/LogDelivery",
} as const;
type Group = keyof typeof groups;

export interface Grant {
  /** The owner of the bucket, a group, or another account: `id=shop`. */
  readonly grantee: "owner" | Group | `id=${string}`;
  readonly permission: Permission;
}

const full: Grant = { grantee: "owner", permission: "FULL_CONTROL" };
const grantsMax = 100;

function to(grantee: Group, ...all: readonly Permission[]): Grant[] {
  return all.map((permission) => ({ grantee, permission }));
}

const canned: Readonly<Record<string, readonly Grant[]>> = {
  private: [full],
  "public-read": [...to("everybody", "READ"), full],
  "public-read-write": [...to("everybody", "READ", "WRITE"), full],
  "authenticated-read": [...to("authenticated", "READ"), full],
  "log-delivery-write": [...to("logs", "WRITE", "READ_ACP"), full],
  // The owner of a bucket also owns the objects in it.
  "bucket-owner-read": [full],
  "bucket-owner-full-control": [full],
};

/** The stored form: `everybody:READ owner:FULL_CONTROL`. */
export function formatGrants(grants: readonly Grant[]): string {
  return grants.map(({ grantee, permission }) => `${grantee}:${permission}`).join(" ");
}

/** Without a list, only the owner has access. */
export function parseGrants(text: string | undefined): readonly Grant[] {
  if (text === undefined) return [full];
  return text
    .split(" ")
    .filter((item) => item !== "")
    .map((item) => item.split(":"))
    .map(([grantee, permission]) => ({ grantee, permission }) as Grant);
}

/**
 * True if the list grants this permission to the account or to everybody. With `isOpen` false,
 * groups are ignored.
 */
export function isListed(
  text: string | undefined,
  permission: Permission,
  account: string | undefined,
  { isOpen }: { readonly isOpen: boolean },
): boolean {
  const grantees = [
    ...(isOpen ? ["everybody"] : []),
    ...(account === undefined ? [] : [`id=${account}`]),
    ...(isOpen && account !== undefined ? ["authenticated"] : []),
  ];
  return parseGrants(text).some(
    (grant) => grantees.includes(grant.grantee) && [permission, "FULL_CONTROL"].includes(grant.permission),
  );
}

/** True if the list grants something to everybody or to every key pair. */
export function isOpenList(grants: readonly Grant[]): boolean {
  return grants.some(({ grantee }) => grantee === "everybody" || grantee === "authenticated");
}

/** True if the list grants anything to anyone but the owner. */
export function isShared(grants: readonly Grant[]): boolean {
  return isOpenList(grants) || grants.some(({ grantee }) => grantee.startsWith("id="));
}

/** Gives an account full control over the object that it puts into a bucket of another account. */
export function withWriter(grants: readonly Grant[], writer: string): readonly Grant[] {
  return [{ grantee: `id=${writer}`, permission: "FULL_CONTROL" }, ...grants];
}

/**
 * Returns the grants that the headers of a request ask for; undefined if there are none. Throws
 * InvalidArgument.
 */
export function findGrants(request: S3Request, accounts: Accounts): readonly Grant[] | undefined {
  const name = findHeader(request, "x-amz-acl");
  const granted = [...grantHeaders(request, accounts)];
  if (name !== undefined && granted.length > 0)
    throw new S3Error("InvalidRequest", { message: "Specifying both Canned ACLs and Header Grants is not allowed" });
  if (name !== undefined) return cannedGrants(name);
  return granted.length === 0 ? undefined : granted;
}

/** Throws InvalidArgument. */
export function cannedGrants(name: string): readonly Grant[] {
  const grants = Object.hasOwn(canned, name) ? canned[name] : undefined;
  if (grants !== undefined) return grants;
  throw new S3Error("InvalidArgument", { details: { ArgumentName: "x-amz-acl", ArgumentValue: name } });
}

function* grantHeaders(request: S3Request, accounts: Accounts): Generator<Grant> {
  for (const permission of permissions) {
    const text = findHeader(request, `x-amz-grant-${permission.toLowerCase().replace("_", "-")}`);
    for (const item of text?.split(",") ?? []) {
      const [, kind = "", value = ""] = /^\s*([a-z]+)="?([^"]*)"?\s*$/i.exec(item) ?? [];
      yield { grantee: granteeOf(kind.toLowerCase(), value, accounts), permission };
    }
  }
}

/** Throws InvalidArgument or UnresolvableGrantByEmailAddress. */
function granteeOf(kind: string, value: string, { owner, all }: Accounts): Grant["grantee"] {
  if (kind === "id" && value === owner) return "owner";
  if (kind === "id" && all.has(value)) return `id=${value}`;
  const group = (Object.keys(groups) as Group[]).find((name) => kind === "uri" && groups[name] === value);
  if (group !== undefined) return group;
  // The gateway has no e-mail addresses on record.
  if (kind === "emailaddress") throw new S3Error("UnresolvableGrantByEmailAddress");
  const message =
    kind === "uri" ? "Invalid group uri" : kind === "id" ? "Invalid id" : "Argument format not recognized";
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: kind, ArgumentValue: value } });
}

/** Throws MalformedACLError or InvalidArgument. */
export function grantsOfXml(root: XmlElement, accounts: Accounts): readonly Grant[] {
  const malformed = (): Error => new S3Error("MalformedACLError");
  const list = root.find("AccessControlList");
  const ownerId = root.find("Owner")?.findText("ID");
  if (list === undefined || ownerId === undefined) throw malformed();
  if (ownerId !== accounts.owner) throw new S3Error("AccessDenied");
  const found = list.all("Grant");
  if (found.length > grantsMax) throw malformed();
  return found.map((grant) => {
    const permission = permissions.find((name) => name === grant.findText("Permission"));
    const grantee = grant.find("Grantee");
    const kind = ["URI", "ID", "EmailAddress"].find((name) => grantee?.find(name) !== undefined);
    if (permission === undefined || grantee === undefined || kind === undefined) throw malformed();
    return { grantee: granteeOf(kind.toLowerCase(), grantee.getText(kind), accounts), permission };
  });
}

export function grantsAsXml(grants: readonly Grant[], owner: string): XmlContent {
  const typed = (type: string): string =>
    `Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}"`;
  const Grant = grants.map(({ grantee, permission: Permission }) =>
    grantee in groups
      ? { [typed("Group")]: { URI: groups[grantee as Group] }, Permission }
      : { [typed("CanonicalUser")]: accountAsXml(grantee === "owner" ? owner : grantee.slice(3)), Permission },
  );
  return { Owner: accountAsXml(owner), AccessControlList: { Grant } };
}
