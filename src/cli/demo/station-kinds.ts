// The kinds of work that the demo shows. A new one is a file and a line here; each workstation does them in turn.
import { shelfWork } from "./shelf-work.ts";
import type { StationKind } from "./station.ts";
import { stockSales } from "./stock-sales.ts";
import { ticketSales } from "./ticket-sales.ts";

export const stationKinds: readonly StationKind[] = [ticketSales, stockSales, shelfWork];
