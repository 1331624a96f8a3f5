/** Environment variable that holds the mark of an env host: processes that it starts inherit it, and are ended by it. */
export const HOST_MARK = 'LONGPLAY_ENV_HOST';
