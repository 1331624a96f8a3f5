/** The staged world as a toy without a view: the default one is read. */
export { createEnv, start } from './staged-view.ts';
