/** Official TypeScript client of the Model Context Protocol: an optional package, loaded where an MCP world is played. */
import { UserError } from '../../core/errors.ts';

/** Package as it is loaded. */
export type ClientPackage = typeof import('@modelcontextprotocol/client');

/** Loads the package. @throws {UserError} MISSING_ENGINE where it is not installed */
export async function loadClientPackage(): Promise<ClientPackage> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (thrown) {
    const message =
      'mcp: playing an MCP server needs the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client';
    throw new UserError('MISSING_ENGINE', message, { cause: thrown });
  }
}
