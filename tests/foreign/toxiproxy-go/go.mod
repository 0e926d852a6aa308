module pulsarium/toxiproxy

go 1.24.0

require github.com/Shopify/toxiproxy/v2 v2.5.0
