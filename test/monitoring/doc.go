// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the dashboard and the alerts in config/monitoring: with Prometheus' parser against the
// metrics that the client and the controllers serve, and with its engine against samples.
package monitoring
