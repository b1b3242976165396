// Objects on PostgreSQL: the heart of their contract, and the S3 gateway. The rest is in objects.deep.ts.
import { describeBuckets } from "../objects/contract/buckets.ts";
import { describePreconditions } from "../objects/contract/preconditions.ts";
import { describeVersions } from "../objects/contract/versions.ts";
import { makePgObjects } from "./stores.ts";

describeBuckets("PostgreSQL", makePgObjects);
describeVersions("PostgreSQL", makePgObjects);
describePreconditions("PostgreSQL", makePgObjects);
