// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// pool returns the request for a pool without members.
func (b *bench) pool(fields map[string]any) vcd.RawCall {
	body := b.document("pool", map[string]any{
		"enabled":     true,
		"gatewayRef":  ref(b.gateway.ID),
		"defaultPort": 40001,
		"algorithm":   "ROUND_ROBIN",
		"members":     []any{},
	})
	for name, value := range fields {
		body[name] = value
	}
	return jsonPost(poolPath, body)
}

// addPool is a starter that creates a pool.
func (b *bench) addPool(ctx context.Context) (string, error) {
	if err := b.created.add(kindPool); err != nil {
		return "", err
	}
	return b.calls.start(ctx, b.pool(nil))
}

// newPool returns the URN of a pool of the run, and creates one if there is none.
func (b *bench) newPool(ctx context.Context) (string, error) {
	before, err := b.ours(ctx, kindPool)
	if err != nil {
		return "", err
	}
	if len(before) > 0 {
		return before[0].id, nil
	}
	err = b.calls.retryBusy(ctx, func() error {
		id, err := b.addPool(ctx)
		if err != nil {
			return err
		}
		return b.calls.await(ctx, id)
	})
	if err != nil {
		return "", err
	}
	after, err := b.ours(ctx, kindPool)
	if err == nil && len(after) == 0 {
		err = fmt.Errorf("the new pool is not listed: %w", vcd.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return after[0].id, nil
}

// gatewayWritesExclude creates two pools at the same time.
func gatewayWritesExclude(ctx context.Context, b *bench) (outcome, error) {
	got, err := b.exclusive(ctx, b.addPool, b.addPool)
	if err != nil {
		return outcome{}, err
	}
	return got, b.sweep(ctx, kindPool)
}

// busyGatewayConfiguresAll reads a pool while another one is created.
func busyGatewayConfiguresAll(ctx context.Context, b *bench) (outcome, error) {
	quiet, err := b.newPool(ctx)
	if err != nil {
		return outcome{}, err
	}
	for range busyTries {
		var id string
		err := b.calls.retryBusy(ctx, func() (err error) {
			id, err = b.addPool(ctx)
			return err
		})
		if err != nil {
			return outcome{}, err
		}
		pool, err := b.session.Balancers.Pool(ctx, quiet)
		if err != nil {
			return outcome{}, err
		}
		now, err := b.calls.read(ctx, id)
		if err != nil {
			return outcome{}, err
		}
		if err := b.calls.await(ctx, id); err != nil {
			return outcome{}, err
		}
		if now.running {
			return is(pool.Status != vcd.Realized, howStatusRead, howStatusRead), b.sweep(ctx, kindPool)
		}
	}
	return outcome{}, errTooQuick
}

// balancerSettings are the visible settings of a gateway's load balancer.
type balancerSettings struct {
	FeatureSet  string `json:"supportedFeatureSet"`
	IPv6        string `json:"ipv6ServiceNetworkDefinition"`
	Transparent bool   `json:"transparentModeEnabled"`
}

func (b *bench) balancerSettings(ctx context.Context) (balancerSettings, error) {
	var s balancerSettings
	err := b.calls.get(ctx, gatewayPath+url.PathEscape(b.gateway.ID)+"/loadBalancer", "", &s)
	return s, err
}

// premiumFeaturesRefused creates a pool with an algorithm of the premium feature set.
func premiumFeaturesRefused(ctx context.Context, b *bench) (outcome, error) {
	settings, err := b.balancerSettings(ctx)
	if err != nil {
		return outcome{}, err
	}
	if settings.FeatureSet != "STANDARD" {
		return unknown(isPremium), nil
	}
	premium := b.pool(map[string]any{"algorithm": "LEAST_LOAD"})
	alone, err := b.refusedAlone(ctx, kindPool, premium, b.pool(nil))
	return is(alone, howRefusedAlone, howAccepted), err
}

// service returns the document of a disabled virtual service.
func (b *bench) service(pool string, port int, address netip.Addr) map[string]any {
	body := b.document("service", map[string]any{
		"enabled":               false,
		"gatewayRef":            ref(b.gateway.ID),
		"loadBalancerPoolRef":   ref(pool),
		"serviceEngineGroupRef": ref(b.engines),
		"applicationProfile":    map[string]any{"type": "L4", "name": "System-L4-Application", "systemDefined": true},
		"servicePorts": []any{map[string]any{
			"portStart":     port,
			"portEnd":       port,
			"sslEnabled":    false,
			"tcpUdpProfile": map[string]any{"type": "TCP_PROXY"},
		}},
	})
	field := "virtualIpAddress"
	if address.Is6() {
		field = "ipv6VirtualIpAddress"
	}
	body[field] = address.String()
	return body
}

// newService returns the request that creates a virtual service in an API version; empty means the agreed version.
func newService(body map[string]any, version string) vcd.RawCall {
	call := jsonPost(servicePath, body)
	call.Version = version
	return call
}

// ipv6NeedsServiceNetwork creates a virtual service with an IPv6 address, and one with an IPv4 address.
func ipv6NeedsServiceNetwork(ctx context.Context, b *bench) (outcome, error) {
	settings, err := b.balancerSettings(ctx)
	if err != nil {
		return outcome{}, err
	}
	if settings.IPv6 != "" {
		return unknown(hasIPv6Service), nil
	}
	six, err := b.freeAddresses(ctx, true, 1)
	if err != nil {
		return outcome{}, err
	}
	four, err := b.freeAddresses(ctx, false, 1)
	switch {
	case err != nil:
		return outcome{}, err
	case len(six) == 0:
		return unknown(noIPv6), nil
	case len(four) == 0:
		return unknown(noFreeAddress), nil
	}
	pool, err := b.newPool(ctx)
	if err != nil {
		return outcome{}, err
	}
	requested := newService(b.service(pool, 40001, six[0]), "")
	alone, err := b.refusedAlone(ctx, kindService, requested, newService(b.service(pool, 40001, four[0]), ""))
	if err != nil {
		return outcome{}, err
	}
	return is(alone, howRefusedAlone, howAccepted), b.sweep(ctx, kindPool)
}

// transparentSince is the first API version with the field transparentModeEnabled.
const transparentSince = "37.1"

// newerFieldsRefused creates a virtual service with a field that is newer than the API version of the request. The same
// request must be accepted in a newer version, and without the field.
func newerFieldsRefused(ctx context.Context, b *bench) (outcome, error) {
	settings, err := b.balancerSettings(ctx)
	older := b.before(transparentSince)
	newer := b.since(transparentSince)
	if err != nil || !settings.Transparent || older == "" || len(newer) == 0 {
		return unknown(noTransparent), err
	}
	four, err := b.freeAddresses(ctx, false, 1)
	if err != nil {
		return outcome{}, err
	}
	if len(four) == 0 {
		return unknown(noFreeAddress), nil
	}
	pool, err := b.newPool(ctx)
	if err != nil {
		return outcome{}, err
	}
	with := func(version string) vcd.RawCall {
		body := b.service(pool, 40001, four[0])
		body["transparentModeEnabled"] = true
		return newService(body, version)
	}
	alone, err := b.refusedAlone(ctx, kindService, with(older), newService(b.service(pool, 40001, four[0]), older))
	if err != nil {
		return outcome{}, err
	}
	if alone {
		accepted, err := b.accepts(ctx, kindService, with(newer[0]))
		if err != nil || !accepted {
			return outcome{}, errors.Join(err, errControl)
		}
	}
	return is(alone, howFieldRefused, howFieldAccepted), b.sweep(ctx, kindPool)
}

// sharedVIPStays changes the address of one of two virtual services that share an address.
func sharedVIPStays(ctx context.Context, b *bench) (outcome, error) {
	free, err := b.freeAddresses(ctx, false, 2)
	if err != nil {
		return outcome{}, err
	}
	if len(free) < 2 {
		return unknown(noFreeAddress), nil
	}
	pool, err := b.newPool(ctx)
	if err != nil {
		return outcome{}, err
	}
	for i := range maxConcurrent {
		if err := b.created.add(kindService); err != nil {
			return outcome{}, err
		}
		if err := b.calls.do(ctx, newService(b.service(pool, 40001+i, free[0]), "")); err != nil {
			return outcome{}, fmt.Errorf("creating virtual service %s: %w", strconv.Itoa(i+1), err)
		}
	}
	services, err := b.ours(ctx, kindService)
	if err != nil {
		return outcome{}, err
	}
	if len(services) != maxConcurrent {
		return unknown(answeredUnknown), b.sweep(ctx, kindService, kindPool)
	}
	err = b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.Balancers.UpdateVirtualService(ctx, services[0].id, vcd.VirtualServiceChange{Address: &free[1]})
	})
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err != nil, howRefusedAlone, howAccepted), b.sweep(ctx, kindService, kindPool)
}
