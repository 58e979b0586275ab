/** The forms of names, as the hub requires them. */

export const FEED_NAME = {
  pattern: /^[a-z0-9][a-z0-9|_.\-+~!:,@]{0,63}$/i,
  sentence: 'A feed name has 1 to 64 letters, digits and | _ . - + ~ ! : , @, a letter or digit first.',
}
export const SITE_NAME = {
  pattern: /^[a-z0-9][a-z0-9.-]{0,62}$/,
  sentence: 'A site name has 1 to 63 lower-case letters, digits, dots and dashes, a letter or digit first.',
}
export const USER_NAME = {
  pattern: /^[a-z0-9][a-z0-9._@+-]{0,63}$/i,
  sentence: 'A user name has 1 to 64 letters, digits and . _ @ + -, a letter or digit first.',
}
