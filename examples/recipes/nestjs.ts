// A store in a NestJS application: imports: [HoldfastModule.forRoot("/mnt/shop")], and @Inject(STORE) where it is used.
import { openStore, type Store } from "holdfast";

export const STORE = Symbol("the store of Holdfast");
// oxlint-disable-next-line typescript/no-extraneous-class -- NestJS knows a module by its class
export class HoldfastModule {
  static forRoot(location: string) {
    const store = { provide: STORE, useFactory: () => openStore(location, { name: "api" }) };
    const closing = {
      provide: Symbol("closes the store"),
      inject: [STORE],
      useFactory: (opened: Store) => ({ onApplicationShutdown: () => opened.close() }),
    };
    return { module: HoldfastModule, global: true, providers: [store, closing], exports: [STORE] };
  }
}
