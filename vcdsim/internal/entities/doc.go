// SPDX-License-Identifier: Apache-2.0

// Package entities handles the requests for defined entities: their types, interfaces, behaviors, access controls and
// metadata. It does not know the content of an entity beyond the schema of its type.
package entities
