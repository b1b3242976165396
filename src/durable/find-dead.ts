// Who of the holders of a ground is dead, for somebody who sweeps and may only just have come.
import type { Ground } from "./ground.ts";
import type { Holder } from "./holder.ts";

/** How often one who looks old by his stamp is watched, each time after an eighth of his lease: in that time a living holder beats. */
const looksAtOld = 3;
/** Nobody waits for longer than that to sweep: those with a longer lease are left to whom they stand in the way of. */
const waitMsMax = 120_000;

type Site = Pick<Ground, "ports" | "witness" | "withProbe">;

/** Takes time only on a share, and only when somebody looks old there. */
export async function findDead(site: Site, holders: readonly Holder[]): Promise<Holder[]> {
  const { ports, witness } = site;
  const dead: Holder[] = [];
  const living: Holder[] = [];
  for (const holder of holders) ((await witness.look(holder)) === "dead" ? dead : living).push(holder);
  // On a local disk a death is proven by the kernel. On a share also those count whom nobody has watched for a lease: who opens, works and closes never does,
  // and what was left would be there for ever.
  if (living.length === 0 || ports.disk.volume.kind === "local") return dead;
  const old = await findOld(site, living);
  const stayedSilent = await Promise.all(old.map((holder) => staysSilent(site, holder)));
  return [...dead, ...old.filter((_, index) => stayedSilent[index])];
}

async function findOld(site: Site, holders: readonly Holder[]): Promise<Holder[]> {
  return await site.withProbe(async (probe) => {
    const old: Holder[] = [];
    for (const holder of holders)
      if (looksAtOld * lookEveryMs(holder) <= waitMsMax && (await site.witness.looksOld(holder, probe)))
        old.push(holder);
    return old;
  });
}

async function staysSilent(site: Site, holder: Holder): Promise<boolean> {
  for (let look = 0; look < looksAtOld; look++) {
    await site.ports.clock.sleep(lookEveryMs(holder));
    if ((await site.witness.look(holder)) === "dead") return true;
  }
  // With a file of now, and not of then.
  return (await site.withProbe((probe) => site.witness.lookOnce(holder, probe))) === "dead";
}

function lookEveryMs({ leaseMs }: Holder): number {
  return leaseMs / 8;
}
