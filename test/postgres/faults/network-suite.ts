// Connections that are cut: before a statement arrives, in the middle of it, and after it was committed.
import { until } from "../../waiting.ts";
import { Proxy, type Cut } from "../proxy.ts";
import { describeHistory } from "./audit.ts";

const cuts = 200;
/** What commits: a transaction's end, or a statement that is a transaction of its own. */
const committing = /commit|hf_[a-z_]+_\d|update hf_|insert into|delete from/;
const ways: readonly Cut[] = ["unsent", "half", "unanswered", "unanswered"];

describeHistory(`${cuts} connections cut in the middle of COMMIT`, {
  enough: 300,
  rage: async (world) => {
    const proxy = await Proxy.open(world.server.url);
    world.onOver(() => proxy.close());
    world.url = proxy.url;
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    let seen = 0;
    let made = 0;
    proxy.cutsAt = (sent) =>
      made < cuts && committing.test(sent) && ++seen % 29 === 0 ? ways[made++ % ways.length] : undefined;
    await until(() => made === cuts);
  },
});
