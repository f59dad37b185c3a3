// SPDX-License-Identifier: Apache-2.0

package servingcert

// Changed is a helper for package servingcert_test.
var Changed = changed
