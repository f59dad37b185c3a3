// SPDX-License-Identifier: Apache-2.0

package tokens

// Fingerprint is for package tokens_test, which is external because controllertest imports this package.
var Fingerprint = fingerprint
