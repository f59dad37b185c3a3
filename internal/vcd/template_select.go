// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A TemplateQuery contains the conditions for the selection of a vApp template.
type TemplateQuery struct {
	Catalog  string         // name or URN
	Pattern  string         // the glob of Name, with asterisks and question marks; empty: any
	Name     *regexp.Regexp // matches the whole name
	Metadata []TextMetadata // required metadata of type text
}

// TextMetadata is a metadata entry of type text in the domain GENERAL.
type TextMetadata struct{ Key, Value string }

// String describes the query for messages.
func (q TemplateQuery) String() string {
	var parts []string
	if q.Pattern != "" {
		parts = append(parts, "name "+q.Pattern)
	}
	for _, entry := range q.Metadata {
		parts = append(parts, fmt.Sprintf("metadata %s=%s", entry.Key, entry.Value))
	}
	return strings.Join(parts, ", ")
}

// SelectTemplate returns the newest vApp template of a catalog that matches a query. It skips incomplete templates.
// Catalogs of other organizations may have the same name. If several of them have matching templates, SelectTemplate
// fails with [ErrAmbiguous].
func (t *Templates) SelectTemplate(ctx context.Context, query TemplateQuery) (Template, error) {
	key := cache.Key("templates", query.Catalog, query.Name.String(), query.String())
	return cache.Lookup(ctx, t.lookups, key, func(ctx context.Context) (Template, error) {
		in := "catalog " + query.Catalog
		filter, err := t.selectFilter(query, in)
		if err != nil {
			return Template{}, err
		}
		records, err := api.QueryAll(ctx, t.client, "vAppTemplate", "the templates of "+in, filter, "name",
			func(r *types.QueryResultVappTemplateType) string { return r.HREF },
			func(page *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultVappTemplateType) {
				return page.VappTemplateRecord, page.AdminVappTemplateRecord
			})
		if err != nil {
			return Template{}, fmt.Errorf("looking up templates of %s: %w", in, err)
		}
		newest, err := newestMatch(records, query, in)
		if err != nil {
			return Template{}, err
		}
		if newest == nil {
			return Template{}, t.blameCatalog(ctx, query.Catalog, &LookupError{
				Kind: "a template that matches",
				Name: query.String(),
				In:   in,
				Err:  ErrNotFound,
			})
		}
		return t.readTemplate(ctx, locatedTemplate{
			ref:     Ref{ID: urn.Of(urn.Template, newest.HREF), Name: newest.Name},
			catalog: Ref{ID: urn.Of(urn.Catalog, newest.Catalog), Name: newest.CatalogName},
		}, in)
	})
}

// selectFilter returns the filter for the query service. It may match more names than the pattern, so the caller must
// compare the names with the query.
func (t *Templates) selectFilter(query TemplateQuery, in string) (string, error) {
	by, err := t.catalogTerm(query.Catalog)
	if err != nil {
		return "", err
	}
	terms := []fiql.Term{by}
	if query.Pattern != "" {
		if err := fiql.CheckName("template", strings.ReplaceAll(query.Pattern, "*", "?"), in); err != nil {
			return "", err
		}
		terms = append(terms, fiql.Like("name", strings.ReplaceAll(query.Pattern, "?", "*"))) // VCD does not support question marks
	}
	for _, entry := range query.Metadata {
		for _, text := range []string{entry.Key, entry.Value} {
			if err := fiql.CheckName("metadata", text, in); err != nil {
				return "", err
			}
		}
		terms = append(terms, fiql.HasMetadata(entry.Key, entry.Value))
	}
	return fiql.AllOf(terms...), nil
}

// incomplete are the states of templates from which no VM can be created.
var incomplete = []string{"UNRESOLVED", "FAILED_CREATION", "UNRECOGNIZED", "UNKNOWN"}

// newestMatch returns the newest record that matches a query, or nil.
func newestMatch(records []*types.QueryResultVappTemplateType, query TemplateQuery, in string) (*types.QueryResultVappTemplateType, error) {
	matches := slices.DeleteFunc(records, func(r *types.QueryResultVappTemplateType) bool {
		return !query.Name.MatchString(r.Name) || r.IsExpired || slices.Contains(incomplete, r.Status) ||
			r.CatalogName != query.Catalog && !urn.Is(query.Catalog)
	})
	if len(matches) == 0 {
		return nil, nil
	}
	for _, r := range matches {
		if urn.UUID(r.Catalog) != urn.UUID(matches[0].Catalog) {
			return nil, &LookupError{
				Kind:   "a template that matches",
				Name:   query.String(),
				In:     in,
				Err:    ErrAmbiguous,
				Reason: "is in several catalogs of that name",
			}
		}
	}
	return slices.MaxFunc(matches, func(a, b *types.QueryResultVappTemplateType) int {
		return cmp.Or(created(a).Compare(created(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.HREF, b.HREF))
	}), nil
}

// created returns the time when a template was added to its catalog, or the zero time if it is unknown.
func created(r *types.QueryResultVappTemplateType) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999Z0700"} {
		if at, err := time.Parse(layout, r.CreationDate); err == nil {
			return at
		}
	}
	return time.Time{}
}
