// SPDX-License-Identifier: Apache-2.0

// Package entities answers for defined entities: their types, interfaces, behaviours, access and metadata.
package entities
