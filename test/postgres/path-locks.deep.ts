// The contract of path locks on PostgreSQL.
import { describePathLocks } from "../locks/path-locks-contract.ts";
import { PgLocksWorld } from "./stores.ts";

describePathLocks("PostgreSQL", async () => new PgLocksWorld());
