// Access lists: who beside the owner may do what with a bucket or an object. There is one account, so
// a list can only grant something to the owner, to everybody, or to every key pair.
import { S3Error } from "../http/s3-error.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import type { XmlElement } from "../http/xml-in.ts";
import type { XmlContent } from "../http/xml-out.ts";

const permissions = ["FULL_CONTROL", "READ", "WRITE", "READ_ACP", "WRITE_ACP"] as const;
type Permission = (typeof permissions)[number];

const groups = {
  everybody: "http://acs.amazonaws.com/groups/global/AllUsers",
  authenticated: "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
  logs: "http://acs.amazonaws.com/groups/s3/LogDelivery",
} as const;
type Group = keyof typeof groups;

export interface Grant {
  readonly grantee: "owner" | Group;
  readonly permission: Permission;
}

/** The only account there is. */
export const owner = { ID: "holdfast", DisplayName: "holdfast" };
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
  // The owner of a bucket owns its objects.
  "bucket-owner-read": [full],
  "bucket-owner-full-control": [full],
};

/** As it is kept: `everybody:READ owner:FULL_CONTROL`. */
export function formatGrants(grants: readonly Grant[]): string {
  return grants.map(({ grantee, permission }) => `${grantee}:${permission}`).join(" ");
}

/** Without a list, the owner alone. */
export function parseGrants(text: string | undefined): readonly Grant[] {
  if (text === undefined) return [full];
  return text
    .split(" ")
    .filter((item) => item !== "")
    .map((item) => item.split(":"))
    .map(([grantee, permission]) => ({ grantee, permission }) as Grant);
}

export function grantsEverybody(text: string | undefined, permission: Permission): boolean {
  return parseGrants(text).some(
    (grant) => grant.grantee === "everybody" && [permission, "FULL_CONTROL"].includes(grant.permission),
  );
}

/** Whether it lets in more than the owner. */
export function isShared(grants: readonly Grant[]): boolean {
  return grants.some(({ grantee }) => grantee === "everybody" || grantee === "authenticated");
}

/** What the headers of a request ask for; undefined when they ask for nothing. InvalidArgument. */
export function findGrants(request: S3Request): readonly Grant[] | undefined {
  const name = findHeader(request, "x-amz-acl");
  const granted = [...grantHeaders(request)];
  if (name !== undefined && granted.length > 0)
    throw new S3Error("InvalidRequest", { message: "Specifying both Canned ACLs and Header Grants is not allowed" });
  if (name !== undefined) return cannedGrants(name);
  return granted.length === 0 ? undefined : granted;
}

/** InvalidArgument. */
export function cannedGrants(name: string): readonly Grant[] {
  const grants = Object.hasOwn(canned, name) ? canned[name] : undefined;
  if (grants !== undefined) return grants;
  throw new S3Error("InvalidArgument", { details: { ArgumentName: "x-amz-acl", ArgumentValue: name } });
}

function* grantHeaders(request: S3Request): Generator<Grant> {
  for (const permission of permissions) {
    const text = findHeader(request, `x-amz-grant-${permission.toLowerCase().replace("_", "-")}`);
    for (const item of text?.split(",") ?? []) {
      const [, kind = "", value = ""] = /^\s*([a-z]+)="?([^"]*)"?\s*$/i.exec(item) ?? [];
      yield { grantee: granteeOf(kind.toLowerCase(), value), permission };
    }
  }
}

/** InvalidArgument, NotImplemented. */
function granteeOf(kind: string, value: string): Grant["grantee"] {
  if (kind === "id" && value === owner.ID) return "owner";
  const group = (Object.keys(groups) as Group[]).find((name) => kind === "uri" && groups[name] === value);
  if (group !== undefined) return group;
  if (kind === "emailaddress")
    throw new S3Error("NotImplemented", { message: "Grants to an e-mail address are not implemented." });
  const message =
    kind === "uri" ? "Invalid group uri" : kind === "id" ? "Invalid id" : "Argument format not recognized";
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: kind, ArgumentValue: value } });
}

/** MalformedACLError, InvalidArgument. */
export function grantsOfXml(root: XmlElement): readonly Grant[] {
  const malformed = (): Error => new S3Error("MalformedACLError");
  const list = root.find("AccessControlList");
  const ownerId = root.find("Owner")?.findText("ID");
  if (list === undefined || ownerId === undefined) throw malformed();
  if (ownerId !== owner.ID) throw new S3Error("AccessDenied");
  const found = list.all("Grant");
  if (found.length > grantsMax) throw malformed();
  return found.map((grant) => {
    const permission = permissions.find((name) => name === grant.findText("Permission"));
    const grantee = grant.find("Grantee");
    const kind = ["URI", "ID", "EmailAddress"].find((name) => grantee?.find(name) !== undefined);
    if (permission === undefined || grantee === undefined || kind === undefined) throw malformed();
    return { grantee: granteeOf(kind.toLowerCase(), grantee.getText(kind)), permission };
  });
}

export function grantsAsXml(grants: readonly Grant[]): XmlContent {
  const typed = (type: string): string =>
    `Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}"`;
  const Grant = grants.map(({ grantee, permission: Permission }) =>
    grantee === "owner"
      ? { [typed("CanonicalUser")]: owner, Permission }
      : { [typed("Group")]: { URI: groups[grantee] }, Permission },
  );
  return { Owner: owner, AccessControlList: { Grant } };
}
