// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var errReal = errors.New("--real needs Linux")

// A booted is a placeholder, because VMs can boot only on Linux.
type booted struct {
	bootedImage

	proxyURL string
}

func (o options) checkReal(context.Context) error {
	if o.realNodes {
		return errReal
	}
	return nil
}

func (*quickstart) openBooted(context.Context, *vcdsim.Config) error { return errReal }

func (*booted) follow(context.Context, *vcdsim.Simulator) {}
func (*booted) stage(string) string                       { return "" }
func (*booted) keepLogs(string) error                     { return nil }
func (*booted) close() error                              { return nil }
