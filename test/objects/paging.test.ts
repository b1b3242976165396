// Pages of listings in memory: they do not depend on the disk.
import { bucketOf } from "./acceptance/memory-bucket.ts";
import { describePaging } from "./contract/paging.ts";

describePaging("the memory disk", bucketOf);
