// What the interface of an object store promises, whatever it is stored in.
import { describeAttributes } from "./contract/attributes.ts";
import { describeBodies } from "./contract/bodies.ts";
import { describeBuckets } from "./contract/buckets.ts";
import { describeListings } from "./contract/listing.ts";
import { describePreconditions } from "./contract/preconditions.ts";
import { describeUploads } from "./contract/multipart.ts";
import { describeVersions } from "./contract/versions.ts";
import type { StoreSiteMaker } from "./object-sites.ts";

export function describeObjects(name: string, make: StoreSiteMaker): void {
  describeBuckets(name, make);
  describeVersions(name, make);
  describeAttributes(name, make);
  describePreconditions(name, make);
  describeBodies(name, make);
  describeListings(name, make);
  describeUploads(name, make);
}
